package bptc

// lanes reports whether the slowest functions process eight values at once. The output is the same.
var lanes = true // all processors of arm64 have NEON
