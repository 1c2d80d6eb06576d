//go:build !amd64

package bcn

// wider is always false here; the compiler needs the function.
var wider = false

func channelsWide(*[64]byte, *uint16, *[3072]byte, *[16]byte) {}
