"""What passes between jobs and between the two sides: frozen, typed, versioned JSON, no arrays."""
