package kilnrt

// Waiting returns the number of references to a resource that is loaded or being loaded.
func (l *Library) Waiting(id uint32) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.layers {
		if r, err := p.ByID(id); err == nil {
			if e := l.loaded[contentOf(&r)]; e != nil {
				return e.refs
			}
		}
	}
	return 0
}
