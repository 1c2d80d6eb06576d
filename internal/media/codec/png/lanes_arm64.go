package png

// lanes reports whether all channels of a pixel are computed at once. The pixels are the same.
var lanes = true // all processors of arm64 have NEON
