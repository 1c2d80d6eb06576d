//go:build !linux && !darwin && !windows

package disk

func bootID() string { return "" }
