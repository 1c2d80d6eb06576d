package local

import "io/fs"

// private reports whether only this user can write to a folder: Windows gives folders of a user these rights by itself.
func private(fs.FileInfo) bool { return true }
