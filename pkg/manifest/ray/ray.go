package ray

import (
	"encoding/json"
	"errors"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// The kinds that are read.
const (
	RayCluster = workload.KindRayCluster
	RayJob     = workload.KindRayJob
	RayService = workload.KindRayService
	// RayCronJob is predicted, and refused at submission.
	RayCronJob = "RayCronJob"
)

// GroupVersion is the API version of a stamped manifest.
const GroupVersion = "ray.io/v1"

// oldVersion is read, too.
const oldVersion = "ray.io/v1alpha1"

// Names of pod sets that are no worker groups.
const (
	HeadGroup      = "headgroup" // KubeRay's name for the head's group
	SubmitterGroup = "submitter"
)

// Bounds of a gang.
const (
	MaxPods   = workload.MostPods
	maxGroups = 32
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
	// PodSets are the pods for which Muster keeps places. Worker groups without pods
	// are among them: they may grow.
	PodSets []workload.PodSet
	// Life is what the annotations ask for.
	Life workload.Life
	// Warnings name what is accepted and most likely not meant.
	Warnings []string
}

// Prediction is what KubeRay makes of a manifest.
type Prediction struct {
	Object
	// Created are the pods that KubeRay creates of the manifest as it stands, with
	// what each asks for; groups without pods are left out. They differ from
	// PodSets where the cluster may grow, where something comes after the pods,
	// and where the object is suspended.
	Created []workload.PodSet
	// Refusal is why Muster does not take the manifest, although KubeRay would; it
	// wraps ErrInvalid. Nil when Muster takes it.
	Refusal error
}

// Read reads one manifest for KubeRay as shipped; see Operator.Read.
func Read(data []byte) (Object, error) { return Shipped().Read(data) }

// Read reads one RayCluster, RayJob or RayService in JSON or YAML. Errors wrap
// ErrInvalid and say what is wrong, where, and what would be right.
func (o Operator) Read(data []byte) (Object, error) {
	prediction, err := o.Predict(data)
	if prediction.Object.Kind == RayCronJob || err != nil && isCronJob(data) {
		return Object{}, cronJobRefused() // before anything that mending would not help
	}
	if err != nil {
		return Object{}, err
	}
	return prediction.Object, prediction.Refusal
}

// Predict predicts what the operator creates of one RayCluster, RayJob,
// RayService or, for one run of it, RayCronJob. An error, which wraps ErrInvalid,
// means that KubeRay or the API server would choke on the manifest.
func (o Operator) Predict(data []byte) (Prediction, error) {
	if err := checkBytes(len(data), ""); err != nil {
		return Prediction{}, err
	}
	tree, err := parse(data)
	if err != nil {
		return Prediction{}, err
	}
	v := &verdict{}
	object, err := identify(v, tree)
	if err != nil {
		return Prediction{}, err
	}
	delete(tree, "status") // of another life of the object
	if object.Manifest, err = unescaped.JSON(tree); err != nil {
		return Prediction{}, refuse("manifest", err.Error(), "write it as JSON or YAML")
	}
	if err := checkBytes(len(object.Manifest), " as JSON"); err != nil {
		return Prediction{}, err
	}
	if object.APIVersion == oldVersion {
		if err := checkOldVersion(object.Kind, tree); err != nil {
			return Prediction{}, err
		}
	}
	if object.Kind == RayJob {
		object.Life.RunTime = declaredRunTime(object.Life.RunTime, object.Manifest)
	}
	read := reading{operator: o, verdict: v, tree: tree, manifest: object.Manifest}
	created, admitted, err := read.pods(object.Kind)
	if err != nil {
		return Prediction{}, err
	}
	if where, what, why := kube.BadMetadata(tree); why != "" {
		return Prediction{}, refuse(where, what, why)
	}
	metadata, _ := tree["metadata"].(map[string]any)
	clusters, err := ReadClusters(metadata)
	if err != nil {
		return Prediction{}, err
	}
	for i := range admitted {
		admitted[i].Clusters, admitted[i].PreferClusters = clusters.May, clusters.Prefers
	}
	object.PodSets, object.Warnings = admitted, append(v.warnings, kube.MistakenKeys(tree)...)
	return Prediction{Object: object, Created: created, Refusal: v.refusal}, nil
}

// reading is a manifest in the course of being read.
type reading struct {
	operator Operator
	verdict  *verdict
	tree     map[string]any
	manifest json.RawMessage
}

// pods predicts the pods of an object.
func (r *reading) pods(kind string) (created, admitted []workload.PodSet, err error) {
	var members []member
	switch kind {
	case RayJob:
		members, err = r.job()
	case RayService:
		members, err = r.service()
	case RayCronJob:
		members, err = r.cronJob()
	default:
		members, err = r.cluster()
	}
	if err != nil {
		return nil, nil, err
	}
	for _, m := range members {
		if m.created > 0 {
			created = append(created, workload.PodSet{Name: m.set.Name, Role: m.set.Role, Count: m.created, Template: m.asCreated})
		}
	}
	admitted, err = bindGang(members)
	if err != nil {
		r.verdict.note(err)
	}
	return created, admitted, nil
}
