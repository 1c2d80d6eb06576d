package sharing

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/folder"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Place is where results are shared, and how.
type Place struct {
	Folder      string // absolute; "": none
	Limit       int64  // of the folder, in bytes; 0: its default
	ReadOnly    bool   // nothing is written to the folder
	Remote      string // address of a server; "": none
	WriteRemote bool   // results are also written to the server
	Credentials reapi.Credentials
	Origin      string // the setting that named the place, for display: kiln.toml, KILN_CACHE, kiln cache on

	Signed  bool // only results signed by a trusted key count, and only such are stored
	trusted []minisign.PublicKey
	signer  *signer // nil: there is no trusted key here
	barred  string  // why nothing is stored although the mode allows it; "": it is
	wished  bool    // the mode says that results are stored, so that barred is worth a warning
	warned  atomic.Bool

	Patience time.Duration // that a build has with slow answers, beyond what they save; 0: patience

	Call time.Duration // that a call of the folder may take, besides what its bytes take; 0: the default of share.Patient

	healthMu sync.Mutex
	health   map[string]*share.Health // of reading from and writing to each cache, over the builds of a process
	late     string                   // file that exists if the server could not be connected to lately; "": it is not recorded
}

// Remember has a file record, over processes, that the server could not be connected to in time.
func (p *Place) Remember(file string) {
	p.healthMu.Lock()
	defer p.healthMu.Unlock()
	p.late = file
}

// healthOf is what is known of a cache from builds before.
func (p *Place) healthOf(name string) *share.Health {
	p.healthMu.Lock()
	defer p.healthMu.Unlock()
	if p.health == nil {
		p.health = map[string]*share.Health{}
	}
	if p.health[name] == nil {
		p.health[name] = &share.Health{}
	}
	return p.health[name]
}

// Writes reports whether results of this machine are stored anywhere.
func (p *Place) Writes() bool { return p.mayWrite() && p.barred == "" }

// mayWrite is Writes, but for trust.
func (p *Place) mayWrite() bool {
	return p.Folder != "" && !p.ReadOnly || p.Remote != "" && p.WriteRemote
}

// Caches are opened caches.
type Caches struct {
	hints   []share.Cache
	results share.Cache
	writers []share.Cache // of results of this machine
	near    share.Cache   // to which what a server has is copied; nil: it is not
	guards  []*share.Guard
	names   []string // names of the guards

	failed []error // errors of opening

	Folder *folder.Folder // nil: none
	Remote *reapi.Client  // nil: none
}

// unopened is a cache that cannot be opened.
type unopened struct {
	name string
	err  error
}

func (u *unopened) Error() string { return u.name + ": " + u.err.Error() }
func (u *unopened) Unwrap() error { return u.err }

// Open opens the caches of a place. Of two, one that cannot be opened does not keep the other from being used.
func (p *Place) Open() (*Caches, error) {
	c := &Caches{}
	var errs []error
	if p.Folder != "" {
		opened := make(chan *folder.Folder, 1)
		err := share.Within(p.Call, func() error {
			f, err := folder.Open(p.Folder, p.Limit, p.ReadOnly)
			opened <- f
			return err
		})
		if err != nil {
			errs = append(errs, &unopened{"the cache folder " + p.Folder, err})
		} else {
			c.Folder = <-opened
			c.add(p, FromFolder, "the cache folder "+p.Folder, share.NewPatient(c.Folder, p.Call), !p.ReadOnly)
		}
	}
	if p.Remote != "" {
		r, err := reapi.Dial(p.Remote, p.Credentials)
		if err != nil {
			errs = append(errs, &unopened{"the cache server " + p.Remote, err})
		} else {
			c.Remote = r
			if _, yes := p.hidden(); yes {
				r.Hurry(hurried)
			}
			c.add(p, FromServer, "the cache server "+p.Remote, r, p.WriteRemote)
		}
	}
	c.failed = errs
	if len(c.hints) == 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// A server that a firewall hides costs each build the time until it is given up. So the next builds give it less, for a while.
const (
	hiddenFor = 10 * time.Minute
	hurried   = 500 * time.Millisecond // to a server on another continent, with TLS: three round trips
)

// hidden reports whether the server could not be connected to lately, and returns the file that records it.
func (p *Place) hidden() (file string, yes bool) {
	p.healthMu.Lock()
	defer p.healthMu.Unlock()
	info, err := os.Stat(p.late)
	return p.late, err == nil && time.Since(info.ModTime()) < hiddenFor
}

// noteHidden records whether the server could be connected to. If that fails, the next build waits as long.
func (p *Place) noteHidden(c *Caches) {
	file, hidden := p.hidden()
	if file == "" || c.Remote == nil {
		return
	}
	if yes, late := c.Remote.Reached(); yes || late && !hidden {
		os.Remove(file)
		if late {
			os.WriteFile(file, nil, 0o666)
		}
	}
}

// Collect shrinks the folder to its limit, if it is writable. p may be nil.
func (p *Place) Collect() (folder.Collected, error) {
	if p == nil || p.Folder == "" || p.ReadOnly {
		return folder.Collected{}, nil
	}
	collected := make(chan folder.Collected, 1)
	err := share.Moving(p.Call, func(moved func()) error {
		f, err := folder.Open(p.Folder, p.Limit, false)
		if err != nil {
			return err
		}
		c, err := f.Collect(f.Limit(), moved)
		collected <- c
		return err
	})
	if err != nil {
		return folder.Collected{}, err
	}
	return <-collected, nil
}

// Usage counts what is in an opened cache folder.
func (p *Place) Usage(f *folder.Folder) (folder.Usage, error) {
	counted := make(chan folder.Usage, 1)
	err := share.Moving(p.Call, func(moved func()) error {
		u, err := f.Usage(moved)
		counted <- u
		return err
	})
	if err != nil {
		return folder.Usage{}, err
	}
	return <-counted, nil
}

// add adds a cache. Reading and writing are guarded by themselves: one that may not be written to is still read.
func (c *Caches) add(p *Place, from, name string, cache share.Cache, writes bool) {
	reading := share.NewGuard(cache, p.healthOf(name))
	c.hints = append(c.hints, origin{reading, from})
	if c.results == nil {
		c.results = c.hints[0]
	} else {
		c.results = share.Tiers(c.results, origin{reading, from}, c.near, p.intact)
	}
	c.guards, c.names = append(c.guards, reading), append(c.names, name)
	if writes {
		writing := share.NewGuard(cache, p.healthOf("to "+name))
		if from == FromFolder { // together with a server, the folder is written to
			c.near = writing
		}
		if p.Writes() {
			c.writers = append(c.writers, writing)
		}
		c.guards, c.names = append(c.guards, writing), append(c.names, name)
	}
}

// Troubles returns the first failure of each cache.
func (c *Caches) Troubles() (list []error) {
	list = append(list, c.failed...)
	said := map[string]bool{}
	for i, g := range c.guards {
		if err := g.Trouble(); err != nil && !said[c.names[i]] {
			said[c.names[i]] = true
			list = append(list, fmt.Errorf("%s: %s", c.names[i], reapi.Reason(err)))
		}
	}
	return list
}

// Close closes the caches.
func (c *Caches) Close() error {
	var errs []error
	for _, h := range c.hints {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
