package engine

// resendLimit bounds the commands that one decision sends again. A stream that was lost lacks
// those of all workloads that run, and submissions are decided between its parts.
const resendLimit = 500

// resends are the subjects whose commands are still to be sent again.
type resends struct{ subjects []string }

// replace takes what a later comparison has found. It contains what was not sent again since the
// earlier one.
func (r *resends) replace(subjects []string) { r.subjects = subjects }

// left is ready while there are any.
func (r *resends) left() <-chan struct{} {
	if len(r.subjects) == 0 {
		return nil
	}
	return always
}

// next removes and returns the subjects for one decision.
func (r *resends) next() []string {
	n := min(resendLimit, len(r.subjects))
	part := r.subjects[:n:n]
	r.subjects = r.subjects[n:]
	return part
}
