package queueobjects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// finalizer keeps an object that is being deleted in the cluster as long as Muster uses it,
// as Kueue's resource-in-use does. Its name is Muster's own: each removes its own.
const finalizer = "muster.dev/resource-in-use"

// heldKinds are those that queue-manager does not remove while they are in use, and that
// would go on to count after they have gone from the cluster.
var heldKinds = []string{"ClusterQueue", "LocalQueue", "ResourceFlavor"}

func isDeleted(object *unstructured.Unstructured) bool { return object.GetDeletionTimestamp() != nil }

func isHeld(object *unstructured.Unstructured) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// hold writes the finalizer on objects that stay and lack it, before they are used.
func (s *Sync) hold(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if isDeleted(object) || isHeld(object) || !slices.Contains(heldKinds, object.GetKind()) {
			continue
		}
		held, err := s.Cluster.WriteFinalizers(ctx, object, append(object.GetFinalizers(), finalizer))
		if err != nil {
			return err
		}
		if held || s.unheld[object.GetNamespace()] {
			continue
		}
		if s.unheld == nil {
			s.unheld = map[string]bool{}
		}
		s.unheld[object.GetNamespace()] = true
		s.Logger.Warn("cannot add the finalizer of a queue object; its deletion will not wait for workloads",
			zap.Stringer("object", keyOf(object)))
	}
	return nil
}

// stop keeps everything from being admitted through the queues whose removal was refused.
// Where the object is still there, it may still be changed, such as to be drained.
func (s *Sync) stop(ctx context.Context, objects []*unstructured.Unstructured, present []query.Applied, remove []kueue.Key, refused map[kueue.Key]string) error {
	for _, p := range present {
		if p.Kind != "ClusterQueue" && p.Kind != "LocalQueue" || !slices.Contains(remove, p.Key) || refused[p.Key] == "" {
			continue
		}
		manifest, err := deleted(p, objects)
		if err != nil {
			return err
		}
		if bytes.Equal(manifest, p.Manifest) {
			continue
		}
		why, refusal, err := s.ask(ctx, query.ConfigureRequest{Apply: []json.RawMessage{manifest}})
		if err != nil {
			return err
		}
		if refusal {
			refused[p.Key] += "; and its admissions cannot be stopped: " + why
		}
	}
	return nil
}

// deleted is the manifest that stops an applied object: as it is in the cluster now, or as
// it was when it has gone.
func deleted(p query.Applied, objects []*unstructured.Unstructured) (json.RawMessage, error) {
	for _, object := range objects {
		if keyOf(object) != p.Key {
			continue
		}
		encoded, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", p.Key, err)
		}
		if now, err := kueue.ParseOne(encoded); err == nil {
			return now.Manifest, nil
		}
	}
	was, err := kueue.ParseOne(p.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the applied %s: %w", p.Key, err)
	}
	if was.Deleted != "" {
		return was.Manifest, nil
	}
	return was.DeletedAt(time.Now())
}

// release lets the deleted objects go that queue-manager has removed, or never had. One that
// cannot be written stops no other.
func (s *Sync) release(ctx context.Context, objects []*unstructured.Unstructured, refused map[kueue.Key]string) error {
	var failed []error
	for _, object := range objects {
		if !isDeleted(object) || !isHeld(object) || refused[keyOf(object)] != "" {
			continue
		}
		others := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == finalizer })
		if _, err := s.Cluster.WriteFinalizers(ctx, object, others); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
