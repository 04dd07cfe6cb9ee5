package nodes

// checkFence checks that a node that was taken over committed nothing by a later call, and nothing at all after the
// first round of its successor.
func (s *simulation) checkFence() {
	s.storage.mu.Lock()
	defer s.storage.mu.Unlock()
	other := map[string]commit{} // by subject and lost node: the first round of another node since
	for _, c := range s.storage.commits {
		if lost, ok := s.storage.taken[c.node]; ok && c.at.After(lost.at) {
			if c.issued.After(lost.at) {
				s.t.Errorf("%s was issued at %s, after the node had been taken over at %s", c, clock(c.issued), clock(lost.at))
			}
			if by, ok := other[c.subject+" "+c.node]; ok {
				s.t.Errorf("%s was committed at %s, although %s had gone on", c, clock(c.at), by)
			}
		}
		for name, lost := range s.storage.taken {
			if key := c.subject + " " + name; name != c.node && c.at.After(lost.at) {
				if _, known := other[key]; !known {
					other[key] = c
				}
			}
		}
	}
}
