// Package local names the folders of this user for what Kiln compiles: a project's own kiln, scripts, and the machine
// code of modules. They are not in the project's folder .kiln, because CI systems and teams copy that from machine to
// machine, and whoever can write to it would then decide what code runs elsewhere. What is in these folders was
// compiled by this user, on this machine.
package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// name of the folder of all that was compiled, in the user's folder for caches.
const name = "kiln-code"

// projectFile has the path of the project that a folder belongs to.
const projectFile = "project"

// Folder returns the folder for a kind of code of the project in a folder, or of all projects, if project is "". It
// is "" if this user has no folder that nobody else can write to. Nothing in it is needed: it can be deleted at any
// time.
func Folder(project, kind string) string {
	root := root()
	switch {
	case root == "":
		return ""
	case project == "":
		return filepath.Join(root, kind)
	}
	if abs, err := filepath.Abs(project); err == nil {
		project = abs
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	folder := filepath.Join(root, "projects", digest.Of([]byte(project)).String()[:32])
	if _, err := os.Lstat(filepath.Join(folder, projectFile)); err != nil {
		tidy(filepath.Dir(folder))
		if os.MkdirAll(folder, 0o700) != nil || os.WriteFile(filepath.Join(folder, projectFile), []byte(project+"\n"), 0o600) != nil {
			return ""
		}
	}
	return filepath.Join(folder, kind)
}

// root returns the folder of all that was compiled; "" if there is none that nobody else can write to.
func root() string {
	if dir, err := os.UserCacheDir(); err == nil {
		if root := filepath.Join(dir, name); made(root) {
			return root
		}
	}
	// No home, as for some users of CI systems, or it belongs to somebody else, as with sudo.
	if root := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", name, os.Getuid())); made(root) {
		return root
	}
	return ""
}

// made makes a folder, and reports whether it is there and only this user can write to it.
func made(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil {
		if os.MkdirAll(filepath.Dir(folder), 0o700) != nil || os.Mkdir(folder, 0o700) != nil {
			return false
		}
		info, err = os.Lstat(folder)
	}
	return err == nil && info.IsDir() && private(info)
}

// tidy deletes the folders of projects that are no longer there.
func tidy(projects string) {
	entries, _ := os.ReadDir(projects)
	for _, e := range entries {
		folder := filepath.Join(projects, e.Name())
		text, err := os.ReadFile(filepath.Join(folder, projectFile))
		if err != nil {
			continue
		}
		if _, err := os.Stat(strings.TrimSuffix(string(text), "\n")); os.IsNotExist(err) {
			os.RemoveAll(folder)
		}
	}
}
