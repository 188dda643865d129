"""Testing: conformance kits for anybody's task or model."""
