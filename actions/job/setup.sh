# Starts setup.py under whichever Python this runner has; that one finds a newer one where it must.
python=$(command -v python3 || command -v python) || {
  echo "::error title=onnx-ci::this runner has no Python on its PATH. Put actions/setup-python before onnx-ci."
  exit 3
}
exec "$python" -I "$(dirname "$0")/setup.py" "$@"
