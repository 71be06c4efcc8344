package admission

import "time"

// BarredSince returns since when a cluster is cordoned or does not report; zero when it is
// neither, also where something else bars it.
func (s *State) BarredSince(cluster string) time.Time {
	since := s.silent[cluster]
	if cordon := s.tree.Cordon(cluster); cordon != nil && (since.IsZero() || cordon.Since.Before(since)) {
		since = cordon.Since
	}
	return since
}
