//go:build !linux && !darwin && !windows

package disk

// Boot tells this start of the computer from others; "" where that is not known, as here, and then nobody notices that it lost power.
func Boot() string { return "" }
