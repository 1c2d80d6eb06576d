// Package seal runs external programs where Kiln sees what they read, and where they write nothing but
// their own files.
//
// A box is put around a thread, and what that thread starts is born in it. Linux keeps three of its walls by thread and hands them
// down to children, for good and without root:
//
//   - landlock refuses to make, change, move or delete files, but in the folders that are named, and signals to what runs outside of the box;
//   - a seccomp filter refuses sockets that lead out of the machine, and what would go round the other two;
//   - the same filter stops each system call with a path in it until a watching thread of Kiln has read that path (seccomp
//     user notification), and then lets it go on.
//
// No second program is started for that: a stub that is Kiln itself takes 10 ms and more to start, a thread 0.05 ms.
//
// Rules:
//
//   - The watcher records and never judges: between its look and the kernel's the program can change the path. An honest program
//     does not; a hostile one still meets landlock.
//   - Nothing hangs. If the watcher ends, the kernel answers every call that waits, and every later one, with ENOSYS. The
//     calls that Kiln itself makes while it cannot be watched, chdir and exec in the new process, are let through by the filter (see place).
//   - What a system cannot do is told by [Supported] and left out, but for tracing: that fails.
package seal

import "errors"

// ErrUnsupported says that this system cannot trace. The error that wraps it tells why.
var ErrUnsupported = errors.New("reads of programs cannot be observed here")

// Box says what a program may do.
type Box struct {
	// Writable folders, absolute. Everything else can only be read, but for devices like /dev/null.
	Writable []string

	// Network allows sockets that lead out of the machine.
	Network bool

	// Trace records what the program looks at.
	Trace bool

	// Skip are folders, absolute and without links in them, that Trace leaves out, besides /proc, /sys and /dev. What a link in them leads
	// to elsewhere is seen.
	Skip []string

	// Busy are folders, absolute and without links in them, in which others than the program may make something while it runs, of which it
	// does not matter whether the program saw it.
	Busy []string

	groups bool // notice who leaves its process group: see Thread
}

// Op is what a program did with a path.
type Op uint8

const (
	Look Op = iota // asked whether it is there, or what it is
	Read           // opened it, or tried to
	List           // opened it, and it is a folder
	Exec           // ran it, or tried to
)

func (o Op) String() string { return [...]string{"look", "read", "list", "exec"}[o] }

// Access is one thing that a program did.
type Access struct {
	// Path as the program gave it, made absolute; it has no "." or "..", and may lead through symbolic links.
	Path string

	// Real is where that led, all links followed. What does not lead anywhere is followed as far as it does.
	Real string

	Op Op

	// State of what the path leads to, just before the program saw it. That is not there if the program could not see it.
	State State
}

// State tells whether a file changed between two looks. The zero value is a file that is not there.
type State struct {
	Exists, Dir    bool
	Device, Inode  uint64
	Size           int64
	Written, Moved int64 // modification and change time, in nanoseconds
}

// SameFolder tells whether two states are of one folder, whatever came into it or went from it.
func (s State) SameFolder(o State) bool {
	return s.Dir && o.Dir && s.Inode == o.Inode && s.Device == o.Device
}

// Support is what this system can do.
type Support struct {
	Trace   error // nil: it can
	Writes  int   // version of landlock; 0: writes are not refused
	Signals bool  // signals to programs outside of the box are refused
	Network bool  // network is refused, and system calls that lead around the box
}

// Versions of landlock that refuse more than those before.
const (
	refersVersion   = 2 // files may be moved and linked from one folder to another, where that is not a way out; before, nowhere
	truncateVersion = 3
	scopes          = 6 // signals, and sockets without a path
)

// Lacks says for people what programs can do, or cannot, since this system is not able to do better.
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
