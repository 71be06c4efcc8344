// Package bundle is the stored form of a workload that consists of several
// objects: what is created, in which order, where pods come from, and when an
// object is done. It writes into the objects what Muster must set.
//
// It is not for reading what people write (package appwrapper) nor for talking
// to an API server. The package is pure.
package bundle

import (
	"encoding/json"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// Kind and APIVersion mark a manifest as a bundle. It is never submitted: package
// appwrapper makes them.
const (
	Kind       = "Bundle"
	APIVersion = "muster.dev/v1"
)

// Bundle is a list of objects that are created together or not at all.
type Bundle struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Submitter is on whose behalf the objects are created; nil when Muster's own
	// rights count.
	Submitter *Submitter `json:"submitter,omitempty"`
	// Owner is the object that the workload was made of; nil when it came as a
	// message. Kubernetes removes what is left of the items after it.
	Owner *Owner `json:"owner,omitempty"`
	Items []Item `json:"items"`
}

// Owner is an object in the items' namespace.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Submitter is a user as the API server knows it.
type Submitter = workload.Identity

// Item is one object.
type Item struct {
	// Object is as submitted, but for its name and namespace, which it has.
	Object json.RawMessage `json:"object"`
	// Templates are where its pods come from. The objects of ray.io have none
	// here: package ray knows them.
	Templates []Template `json:"templates,omitempty"`
	// PodSetPrefix sets the pod sets of a Ray object apart from those of another
	// in the same bundle.
	PodSetPrefix string `json:"podSetPrefix,omitempty"`
	// Done lists types of conditions of which one, when True, means that the
	// object is done; empty when nothing is known about it.
	Done []string `json:"done,omitempty"`
	// MakesPods: the object is what the gang is about. Without it the rest is of
	// no use.
	MakesPods bool `json:"makesPods,omitempty"`
}

// Template is a pod template within an object.
type Template struct {
	// Path leads to the map that has metadata and spec of a pod; numbers are
	// places in lists. It is empty for a Pod.
	Path   []string `json:"path,omitempty"`
	PodSet string   `json:"podSet"`
}

// Identity is how an object is found.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// String is how messages call the object.
func (i Identity) String() string { return i.Kind + " " + i.Namespace + "/" + i.Name }

// Identity reads the item's identity. Objects of ray.io are of the version in which
// they are created, whichever they were written in.
func (i Item) Identity() (Identity, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(i.Object, &head); err != nil {
		return Identity{}, fmt.Errorf("read identity of a wrapped object: %w", err)
	}
	id := Identity{head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name}
	if IsRay(id) {
		id.APIVersion = ray.GroupVersion
	}
	return id, nil
}

// Encode returns the bundle as a manifest.
func (b Bundle) Encode() (json.RawMessage, error) {
	b.APIVersion, b.Kind = APIVersion, Kind
	return unescaped.JSON(b)
}

// ErrNoBundle is wrapped by Decode for a manifest that is none.
var ErrNoBundle = errors.New("manifest is no bundle")

// Decode reads a manifest that Encode has made.
func Decode(manifest json.RawMessage) (Bundle, error) {
	var b Bundle
	if err := json.Unmarshal(manifest, &b); err != nil {
		return Bundle{}, fmt.Errorf("%w: %w", ErrNoBundle, err)
	}
	if b.Kind != Kind || b.APIVersion != APIVersion {
		return Bundle{}, fmt.Errorf("%w: it is %s %s", ErrNoBundle, b.APIVersion, b.Kind)
	}
	return b, nil
}
