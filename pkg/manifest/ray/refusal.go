package ray

import (
	"strconv"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// refusal is why a manifest is not accepted.
type refusal struct {
	where, what, remedy string
}

func (r *refusal) Error() string { return fault.Printable(r.where + ": " + r.what + "; " + r.remedy) }

func (r *refusal) Unwrap() error { return ErrInvalid }

// refuse returns what is wrong, where, and what would be right.
func refuse(where, what, remedy string) error {
	return &refusal{where: where, what: what, remedy: remedy}
}

// verdict keeps the first thing that Muster, and not KubeRay, has against a
// manifest: it can be predicted all the same. Warnings name what is most likely
// not meant.
type verdict struct {
	refusal  error
	warnings []string
}

func (v *verdict) refuse(where, what, remedy string) { v.note(refuse(where, what, remedy)) }

func (v *verdict) note(refusal error) {
	if v.refusal == nil {
		v.refusal = refusal
	}
}

// trail is the way to a field from the root of the manifest.
type trail []string

func (t *trail) enter(key string) { *t = append(*t, key) }
func (t *trail) enterItem(i int)  { *t = append(*t, "["+strconv.Itoa(i)+"]") }
func (t *trail) leave()           { *t = (*t)[:len(*t)-1] }

// String is the path as kubectl writes it: spec.workerGroupSpecs[0].replicas.
func (t trail) String() string {
	var path strings.Builder
	for _, step := range t {
		if path.Len() > 0 && !strings.HasPrefix(step, "[") {
			path.WriteByte('.')
		}
		path.WriteString(fault.Clip(step))
	}
	if path.Len() == 0 {
		return "manifest"
	}
	return path.String()
}
