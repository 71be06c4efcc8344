package ray

import (
	"crypto/sha256"

	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// suffixLength makes names drawn from one generateName collide once in 10^11.
// Kubernetes draws five letters and draws again when a name is taken; Muster's
// names must be the same each time.
const suffixLength = 8

// Name returns the name of the object: its own, or its generateName and letters
// that depend on the workload's id alone.
func Name(o Object, id workload.ID) string {
	if o.Name != "" {
		return o.Name
	}
	const letters = "bcdfghjklmnpqrstvwxz2456789" // as Kubernetes: no words, no look-alikes
	digest := sha256.Sum256([]byte(id))
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		// Two bytes a letter, so that all letters are as good as equally likely.
		suffix[i] = letters[(int(digest[2*i])<<8|int(digest[2*i+1]))%len(letters)]
	}
	return o.GenerateName + string(suffix)
}

// Named returns the object with the name that Name gives, in its manifest too.
func Named(o Object, id workload.ID) (Object, error) {
	if o.Name != "" {
		return o, nil
	}
	tree, err := parse(o.Manifest)
	if err != nil {
		return Object{}, err
	}
	metadata, err := child(tree, "metadata")
	if err != nil {
		return Object{}, err
	}
	name := Name(o, id)
	metadata["name"] = name
	delete(metadata, "generateName")
	if o.Manifest, err = unescaped.JSON(tree); err != nil {
		return Object{}, err
	}
	o.Name, o.GenerateName = name, ""
	return o, nil
}
