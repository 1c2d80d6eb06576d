package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// ErrBusy is returned when another kiln uses the project.
var ErrBusy = errors.New("the project is in use by another kiln")

// again is the interval at which a waiting kiln checks whether the project is free.
const again = 100 * time.Millisecond

// lock lets one at a time work in a project, among goroutines of this process and other kilns.
//
// It locks .kiln/lock. But users delete .kiln, even during a build, and the next kiln would create a lock
// file that is not locked. So the project folder is locked too, where that is possible: on Unix, except on
// network file systems. Windows cannot lock folders, but prevents the deletion of a locked file.
type lock struct {
	turn chan struct{} // full while a goroutine uses the project
	held []*flock.Flock
	file fs.FileInfo // .kiln/lock
}

// Lock locks the project until Unlock. If another kiln or goroutine has it, Lock calls waiting once and waits, or, with
// wait false, returns ErrBusy.
func (p *Workspace) Lock(ctx context.Context, wait bool, waiting func()) error {
	waiting = sync.OnceFunc(waiting)
	select {
	case p.lock.turn <- struct{}{}:
	default:
		if !wait {
			return ErrBusy
		}
		waiting()
		select {
		case p.lock.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := p.lockFiles(ctx, wait, waiting)
	if err != nil {
		<-p.lock.turn
	}
	return p.OwnFiles(err)
}

// Unlock releases the project.
func (p *Workspace) Unlock() error {
	if len(p.lock.held) == 0 {
		return nil
	}
	err := closeLocks(p.lock.held)
	p.lock.held = nil
	<-p.lock.turn
	return err
}

func (p *Workspace) lockFiles(ctx context.Context, wait bool, waiting func()) error {
	for {
		ok, err := p.tryLock()
		if ok || err != nil {
			return err
		}
		if !wait {
			return ErrBusy
		}
		waiting()
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryLock locks both the folder and the file, or nothing.
func (p *Workspace) tryLock() (ok bool, err error) {
	var held []*flock.Flock
	defer func() {
		if !ok {
			err = errors.Join(err, closeLocks(held))
		}
	}()
	if err := p.CheckOutput(); err != nil {
		return false, err
	}
	if p.Config.State == "" { // an audit builds beside the project, which is locked already
		folder := flock.New(p.Dir, flock.SetFlag(os.O_RDONLY))
		ok, err := folder.TryLock()
		if held = append(held, folder); !ok && err == nil {
			return false, nil
		}
	}
	for tries := 1; ; tries++ { // .kiln may be deleted between two steps
		if err := p.MakeStateDir(); err != nil {
			return false, err
		}
		if err := disk.IsFile(p.lockPath()); err != nil { // opening a pipe would block
			return false, err
		}
		file := flock.New(p.lockPath())
		ok, err := file.TryLock()
		if errors.Is(err, fs.ErrNotExist) && tries < 10 {
			continue
		}
		if held = append(held, file); !ok {
			return false, err
		}
		if p.lock.file, err = file.Stat(); err != nil {
			return false, err
		}
		if p.LockThere() {
			p.lock.held = held
			return true, nil
		}
		held = held[:len(held)-1]
		if err := file.Close(); err != nil {
			return false, err
		}
	}
}

// LockThere reports whether .kiln/lock is still the file that is locked.
func (p *Workspace) LockThere() bool {
	now, err := os.Stat(p.lockPath())
	return err == nil && os.SameFile(now, p.lock.file)
}

// StateGone returns an error if .kiln was deleted since the project was locked: its content is then
// inconsistent.
func (p *Workspace) StateGone() error {
	if len(p.lock.held) == 0 || p.LockThere() {
		return nil
	}
	return diag.List{diag.Errorf(diag.StateGone, diag.Pos{File: project.StateFolder}, "the folder was removed while Kiln was at work").WithHint("build again")}
}

func closeLocks(held []*flock.Flock) (err error) {
	for i := len(held) - 1; i >= 0; i-- {
		err = errors.Join(err, held[i].Close())
	}
	return err
}
