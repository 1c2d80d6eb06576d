package etc2

// lanes reports whether many candidates, or many pixels, are priced at once. The output is the same.
var lanes = true // all processors of arm64 have NEON
