//go:build !linux && !windows

package watch

func newNotifier() (notifier, error) { return newFSNotify() }

// networkName is not implemented here: fsnotify fails where a system does not report changes.
func networkName(string) string { return "" }
