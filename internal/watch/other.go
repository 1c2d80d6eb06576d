//go:build !linux

package watch

func newNotifier() (notifier, error) { return newFSNotify() }

// networkName is not known here: fsnotify fails where a system does not tell of changes, and Windows does for shared folders.
func networkName(string) string { return "" }
