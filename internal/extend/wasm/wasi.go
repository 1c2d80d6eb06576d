package wasm

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Error numbers of WASI preview 1.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 21
	wasiInval  = 28
	wasiNoSys  = 52
	wasiBroken = 70 // ESPIPE
)

// clockStart is the first time of each run's clock, in nanoseconds since 1970; a microsecond passes at each read, and a
// sleep returns at once, at the later time. So the clock is the same in each run, and loops that wait for it end.
const (
	clockStart = int64(1_600_000_000 * time.Second)
	clockTick  = int64(time.Microsecond)
)

// maxIO is how many buffers one fd_write may have, or events one poll_oneoff.
const maxIO = 1024

// wasiFunctions is WASI preview 1 without access to the world: a clock, random numbers, two streams for error messages.
// The other functions exist so that libraries of languages can be linked, and return that there is no such file, or no
// such function.
func wasiFunctions() map[string]function {
	all := map[string]function{
		"args_get":            {"ii", "i", answer(wasiOK)},
		"args_sizes_get":      {"ii", "i", (*run).wasiZeroes},
		"environ_get":         {"ii", "i", answer(wasiOK)},
		"environ_sizes_get":   {"ii", "i", (*run).wasiZeroes},
		"clock_res_get":       {"ii", "i", (*run).wasiClockRes},
		"clock_time_get":      {"ili", "i", (*run).wasiClock},
		"fd_write":            {"iiii", "i", (*run).wasiWrite},
		"fd_fdstat_get":       {"ii", "i", (*run).wasiStat},
		"random_get":          {"ii", "i", (*run).wasiRandom},
		"poll_oneoff":         {"iiii", "i", (*run).wasiPoll},
		"sched_yield":         {"", "i", answer(wasiOK)},
		"proc_exit":           {"i", "", (*run).wasiExit},
		"proc_raise":          {"i", "i", answer(wasiNoSys)},
		"fd_seek":             {"ilii", "i", answer(wasiBroken)},
		"fd_fdstat_set_flags": {"ii", "i", answer(wasiOK)},
	}
	for name, params := range map[string]string{
		"fd_advise": "illi", "fd_allocate": "ill", "fd_close": "i", "fd_datasync": "i", "fd_fdstat_set_rights": "ill", "fd_filestat_get": "ii",
		"fd_filestat_set_size": "il", "fd_filestat_set_times": "illi", "fd_pread": "iiili", "fd_prestat_get": "ii", "fd_prestat_dir_name": "iii",
		"fd_pwrite": "iiili", "fd_read": "iiii", "fd_readdir": "iiili", "fd_renumber": "ii", "fd_sync": "i", "fd_tell": "ii",
		"path_create_directory": "iii", "path_filestat_get": "iiiii", "path_filestat_set_times": "iiiilli", "path_link": "iiiiiii",
		"path_open": "iiiiillii", "path_readlink": "iiiiii", "path_remove_directory": "iii", "path_rename": "iiiiii", "path_symlink": "iiiii",
		"path_unlink_file": "iii", "sock_accept": "iii", "sock_recv": "iiiiii", "sock_send": "iiiii", "sock_shutdown": "ii",
	} {
		all[name] = function{params, "i", answer(wasiBadFD)}
	}
	return all
}

// answer is a function that only returns an error number.
func answer(errno int32) func(*run, []uint64) {
	return func(_ *run, s []uint64) { s[0] = uint64(errno) }
}

func errno(s []uint64, ok bool) {
	if s[0] = wasiOK; !ok {
		s[0] = wasiFault
	}
}

func (r *run) wasiZeroes(s []uint64) {
	errno(s, r.memory.WriteUint32Le(uint32(s[0]), 0) && r.memory.WriteUint32Le(uint32(s[1]), 0))
}

func (r *run) wasiClockRes(s []uint64) {
	errno(s, r.memory.WriteUint64Le(uint32(s[1]), uint64(clockTick)))
}

func (r *run) wasiClock(s []uint64) {
	r.clock += clockTick
	errno(s, r.memory.WriteUint64Le(uint32(s[2]), uint64(r.clock)))
}

// wasiWrite keeps the beginning and the end of what is printed, for the message of a failed job.
func (r *run) wasiWrite(s []uint64) {
	fd, vectors, n := uint32(s[0]), uint32(s[1]), uint32(s[2])
	if fd != 1 && fd != 2 || n > maxIO {
		s[0] = wasiBadFD
		return
	}
	list, ok := r.memory.Read(vectors, n*8)
	total := uint32(0)
	for ; ok && len(list) > 0; list = list[8:] {
		var b []byte
		b, ok = r.memory.Read(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		r.printed.add(b)
		total += uint32(len(b))
	}
	errno(s, ok && r.memory.WriteUint32Le(uint32(s[3]), total))
}

// wasiStat reports that streams 0 to 2 are terminals, so that a runtime does not ask further.
func (r *run) wasiStat(s []uint64) {
	if uint32(s[0]) > 2 {
		s[0] = wasiBadFD
		return
	}
	b, ok := r.memory.Read(uint32(s[1]), 24)
	if ok {
		clear(b)
		b[0] = 2                                                // a character device
		binary.LittleEndian.PutUint64(b[8:], math.MaxUint64>>1) // all rights
	}
	errno(s, ok)
}

func (r *run) wasiRandom(s []uint64) {
	b, ok := r.memory.Read(uint32(s[0]), uint32(s[1]))
	if ok {
		r.random.Read(b)
	}
	errno(s, ok)
}

// wasiPoll implements sleeping: all clocks fire at once, the run's clock is set to the first of them, and there is
// nothing else to wait for.
func (r *run) wasiPoll(s []uint64) {
	in, out, n := uint32(s[0]), uint32(s[1]), uint32(s[2])
	if n == 0 || n > maxIO {
		s[0] = wasiInval
		return
	}
	asked, ok1 := r.memory.Read(in, n*48)
	events, ok2 := r.memory.Read(out, n*32)
	if !ok1 || !ok2 {
		s[0] = wasiFault
		return
	}
	first := int64(math.MaxInt64)
	done := make([]byte, n*32) // in and out may overlap
	for i := range int(n) {
		a, e := asked[i*48:], done[i*32:]
		copy(e, a[:8]) // whose it is
		e[10] = a[8]   // kind of event
		if a[8] != 0 { // a stream
			e[8] = wasiBadFD
			first = 0
			continue
		}
		at := int64(min(binary.LittleEndian.Uint64(a[24:]), math.MaxInt64))
		if binary.LittleEndian.Uint16(a[40:])&1 != 0 { // an absolute time, not a duration
			at -= r.clock
		}
		first = min(first, max(at, 0))
	}
	copy(events, done)
	r.clock += min(first, math.MaxInt64-r.clock)
	errno(s, r.memory.WriteUint32Le(uint32(s[3]), n))
}

// exit is the panic of a guest that ends itself.
type exit struct{ code uint32 }

func (*exit) Error() string { return "exit" }

func (r *run) wasiExit(s []uint64) { panic(&exit{uint32(s[0])}) }

// values converts letters to types.
func values(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for i, c := range letters {
		if types[i] = api.ValueTypeI32; c == 'l' {
			types[i] = api.ValueTypeI64
		}
	}
	return types
}
