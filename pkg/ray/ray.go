// Package ray reads RayCluster and RayJob manifests, predicts the pods that
// KubeRay will make of them, and writes into them what Muster must set.
//
// It refuses what Muster cannot guarantee, with the place, the value and the
// remedy. Three rules of it are Muster's own:
//
//   - A cluster with the in-tree autoscaler is admitted at the size in which it
//     is created, and Stamp sets maxReplicas to it: it never outgrows its
//     reservation.
//   - Labels that hand an object to Kueue are dropped, so that it is not queued
//     twice.
//   - v1alpha1 is the same as v1 to KubeRay, which stores both alike; what is
//     stamped is v1.
//
// Not predicted, because the manifest does not show it: sidecars that the
// operator's configuration adds, limit ranges, overhead of runtime classes,
// mutating webhooks, and the pod that cleans Redis up after a cluster with GCS
// fault tolerance, which runs when the gang is gone.
//
// The package is pure. It is not for talking to an API server.
package ray

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"muster.dev/muster/pkg/workload"
)

// The kinds that are read.
const (
	RayCluster = "RayCluster"
	RayJob     = "RayJob"
)

// GroupVersion is the API version of a stamped manifest.
const GroupVersion = "ray.io/v1"

// Names of pod sets that are no worker groups.
const (
	HeadGroup      = "headgroup" // KubeRay's name for the head's group
	SubmitterGroup = "submitter"
)

// Bounds of a gang.
const (
	MaxPods   = 10_000
	MaxGroups = 32
)

// ErrInvalid is wrapped by every error of Read: the manifest is refused, for
// good.
var ErrInvalid = errors.New("invalid manifest")

// Object is a manifest as read.
type Object struct {
	Kind, APIVersion string
	Namespace        string // empty when the manifest has none
	Name             string
	GenerateName     string
	// Manifest is the object as JSON with sorted keys, otherwise as submitted.
	Manifest json.RawMessage
	// PodSets are the pods that KubeRay will create; groups without pods are
	// left out.
	PodSets []workload.PodSet
	// Life is what the annotations ask for.
	Life workload.Life
}

// Read reads one RayCluster or RayJob in JSON or YAML. Errors wrap ErrInvalid
// and say what is wrong, where, and what would be right.
func Read(data []byte) (Object, error) {
	if err := checkBytes(len(data), ""); err != nil {
		return Object{}, err
	}
	tree, err := parse(data)
	if err != nil {
		return Object{}, err
	}
	object, err := identify(tree)
	if err != nil {
		return Object{}, err
	}
	delete(tree, "status") // of another life of the object
	if err := checkQuantities(tree); err != nil {
		return Object{}, err
	}
	if object.Manifest, err = encode(tree); err != nil {
		return Object{}, refuse("manifest", err.Error(), "write it as JSON or YAML")
	}
	if err := checkBytes(len(object.Manifest), " as JSON"); err != nil {
		return Object{}, err
	}
	if object.Kind == RayJob {
		object.Life.RunTime = declaredRunTime(object.Life.RunTime, object.Manifest)
		object.PodSets, err = readJob(tree, object.Manifest)
	} else {
		object.PodSets, err = readCluster(tree, object.Manifest)
	}
	if err != nil {
		return Object{}, err
	}
	return object, nil
}

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
	if o.Manifest, err = encode(tree); err != nil {
		return Object{}, err
	}
	o.Name, o.GenerateName = name, ""
	return o, nil
}

// encode writes JSON with sorted keys, characters as they are.
func encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
