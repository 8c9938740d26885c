"""The exported folder of one model: its layout, tensors, digests and path safety."""
