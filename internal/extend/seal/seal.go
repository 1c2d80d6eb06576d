// Package seal runs external programs in a sandbox, in which Kiln sees what they read, and in which they can write only
// their own files.
//
// A sandbox belongs to a thread, and everything that the thread starts inherits it. It consists of three features of
// Linux that apply to a thread and its children, permanently and without root, and of root's capabilities, which it
// gives up:
//
//   - Landlock refuses to create, change, move or delete files outside of the given folders, and signals to processes
//     outside of the sandbox;
//   - a seccomp filter refuses sockets that lead out of the machine, and calls that would bypass the other two;
//   - the same filter stops each system call with a path until a watching thread of Kiln has read that path (seccomp
//     user notification), and then lets it continue.
//
// No second program is started for that: a helper process takes 10 ms or more to start, a thread 0.05 ms.
//
// Rules:
//
//   - The watcher only records: between its read and the kernel's, the program can change the path. An honest program
//     does not; a hostile one is still restricted by Landlock.
//   - Nothing hangs. If the watcher ends, the kernel answers every waiting call, and every later one, with ENOSYS.
//     The filter allows the calls that Kiln itself makes while it cannot be watched, chdir and exec in the new
//     process (see place).
//   - [Supported] reports what a system cannot do, which is left out; but tracing fails.
package seal

import "errors"

// ErrUnsupported means that this system cannot trace. The error that wraps it has the reason.
var ErrUnsupported = errors.New("reads of programs cannot be observed here")

// Box is what a program may do: its sandbox.
type Box struct {
	// Writable folders, absolute. Everything else is read-only, except devices like /dev/null.
	Writable []string

	// Network allows sockets that lead out of the machine.
	Network bool

	// Trace records what the program accesses.
	Trace bool

	// Skip are folders, absolute and without links, that Trace ignores, in addition to /proc, /sys and /dev. Targets of
	// links in them are recorded.
	Skip []string

	// Busy are folders, absolute and without links, in which other processes may create files while the program runs.
	// It does not matter whether the program saw those.
	Busy []string

	groups bool // notice processes that leave their process group: see Thread
}

// Op is what a program did with a path.
type Op uint8

const (
	Look Op = iota // asked whether it exists, or what it is
	Read           // opened it, or tried to
	List           // opened it, and it is a folder
	Exec           // ran it, or tried to
)

func (o Op) String() string { return [...]string{"look", "read", "list", "exec"}[o] }

// Access is one access of a program.
type Access struct {
	// Path from the program, made absolute; it has no "." or "..", and may lead through symbolic links.
	Path string

	// Real is the path with all links resolved, as far as they lead anywhere.
	Real string

	Op Op

	// State of the target, just before the program saw it. It is missing if the program could not see it.
	State State
}

// State shows whether a file changed between two checks. The zero value is a missing file.
type State struct {
	Exists, Dir    bool
	Device, Inode  uint64
	Size           int64
	Written, Moved int64 // modification and change time, in nanoseconds
}

// SameFolder reports whether two states are of one folder, whatever was added to it or removed.
func (s State) SameFolder(o State) bool {
	return s.Dir && o.Dir && s.Inode == o.Inode && s.Device == o.Device
}

// Support is what this system can do.
type Support struct {
	Trace   error // nil: it can trace
	Writes  int   // version of landlock; 0: writes are not refused
	Signals bool  // signals to processes outside of the sandbox are refused
	Network bool  // network is refused, and so are calls that bypass the sandbox
}

// Versions of Landlock with more restrictions.
const (
	refersVersion   = 2 // files may be moved and linked between folders, if that is not a way out; before, not at all
	truncateVersion = 3
	scopes          = 6 // signals, and sockets without a path
)

// Lacks describes, for display, which restrictions this system does not support.
func (s Support) Lacks() (all []string) {
	add := func(lacks bool, text string) {
		if lacks {
			all = append(all, text)
		}
	}
	add(s.Writes == 0, "they can write anywhere")
	add(s.Writes > 0 && s.Writes < refersVersion, "they cannot move or link files from one folder to another, not even their own")
	add(s.Writes > 0 && s.Writes < truncateVersion, "they can cut files short that they may not write")
	add(!s.Network, "they can use the network, and calls that lead around the box")
	add(!s.Signals, "they can send signals to other programs of this user")
	add(s.Writes < scopes, "they can talk to programs that listen on abstract sockets")
	return all
}
