package kilnrt

// Waiting is how many shares are taken in a resource that is loaded, or about to be.
func (l *Library) Waiting(id uint32) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, e := range l.loaded {
		if r, err := k.p.At(k.index); err == nil && r.ID == id {
			return e.refs
		}
	}
	return 0
}
