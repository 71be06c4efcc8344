package placement

// KeepsDomains reports whether a fleet has the present domains of a level.
func KeepsDomains(f *Fleet, level string) bool {
	t := f.domains[level]
	return t != nil && t.made == f.changes
}

// KeptLevels counts the levels of which a fleet has domains.
func KeptLevels(f *Fleet) int { return len(f.domains) }
