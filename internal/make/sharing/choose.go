package sharing

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Environment variables for shared results.
const (
	FolderVariable = "KILN_CACHE"      // a folder, or off
	ModeVariable   = "KILN_CACHE_MODE" // read or read-write
)

// Choose decides where results are shared: by the environment, by the project file, or by `kiln cache on` for this
// user, in this order. It returns nil if none of them names a place. dir is the project folder.
func Choose(says project.Cache, dir string, getenv func(string) string) (*Place, error) {
	word := getenv(FolderVariable)
	if word == "off" {
		return nil, nil
	}
	p := &Place{Limit: says.MaxSize, Remote: says.Remote, Origin: project.File}
	mode := says.Mode
	if m := getenv(ModeVariable); m != "" {
		if m != "read" && m != "read-write" {
			return nil, diag.Errorf(diag.CacheWrong, diag.Pos{}, "%s cannot be %q", ModeVariable, m).WithHint("it is read or read-write")
		}
		mode = m
	}
	var err error
	if server := getenv(reapi.CacheVariable); server == "off" {
		p.Remote = ""
	} else if server != "" {
		if p.Remote, p.Origin = server, reapi.CacheVariable; !reapi.IsAddress(server) {
			return nil, diag.Errorf(diag.CacheWrong, diag.Pos{}, "%s cannot be %q", reapi.CacheVariable, server).
				WithHint("it is the address of a server, like grpcs://cache.example.com, or off")
		}
	}
	switch {
	case word != "":
		p.Origin = FolderVariable
		if p.Folder, err = expand(word); err == nil {
			p.Folder, err = filepath.Abs(p.Folder)
		}
	case says.Path != "":
		if p.Folder, err = expand(says.Path); err == nil && !filepath.IsAbs(p.Folder) {
			p.Folder = filepath.Join(dir, p.Folder)
		}
	case p.Remote == "":
		p.Folder, p.Origin = UserFolder(), "kiln cache on"
	}
	switch {
	case err != nil:
		return nil, diag.Errorf(diag.CacheWrong, diag.Pos{}, "the cache folder cannot be found: %v", err).WithHint("write its path without ~")
	case p.Folder == "" && p.Remote == "":
		return nil, nil
	}
	p.ReadOnly = mode == "read" && p.Remote == "" // beside a server it is this machine's copy
	p.wished = mode == "read-write" || mode != "read" && p.Remote == ""
	p.WriteRemote, p.Credentials = mode == "read-write", reapi.FromEnvironment(reapi.CacheVariable, getenv)
	if err := p.signing(says, getenv); err != nil {
		return nil, err
	}
	return p, nil
}

// expand replaces ~ at the beginning of a path.
func expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~")
	if !ok || rest != "" && rest[0] != '/' {
		return filepath.FromSlash(path), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, filepath.FromSlash(rest)), err
}

// DefaultFolder is where results are shared on this machine if no other folder is configured.
func DefaultFolder() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "kiln"), err
}

func userFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "kiln", "cache"), err
}

// UserFolder is the folder set by SetUserFolder; "": none.
func UserFolder() string {
	file, err := userFile()
	if err != nil {
		return ""
	}
	data, err := disk.ReadFile(file)
	line, _, _ := strings.Cut(string(data), "\n")
	if err != nil || !filepath.IsAbs(line) {
		return ""
	}
	return line
}

// SetUserFolder sets the folder for all projects of this user that name none; "" removes it.
func SetUserFolder(folder string) error {
	file, err := userFile()
	if err != nil {
		return err
	}
	if folder == "" {
		if _, err := os.Lstat(file); err != nil {
			return nil
		}
		return disk.Remove(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return disk.Save(file, []byte(folder+"\n"))
}
