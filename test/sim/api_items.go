package sim

import (
	"context"
	"encoding/json"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// CreateItem implements dispatcher.Cluster.
func (a api) CreateItem(_ context.Context, id bundle.Identity, manifest json.RawMessage) (uid string, err error) {
	if a.c.scaler == nil {
		return "", errNoBundles
	}
	err = a.change("CreateItem", func() (err error) {
		uid, err = a.c.scaler.create(id, manifest)
		return err
	})
	return uid, err
}

// GetItem implements dispatcher.Cluster.
func (a api) GetItem(_ context.Context, id bundle.Identity) (found *dispatcher.Wrapped, err error) {
	if a.c.scaler == nil {
		return nil, errNoBundles
	}
	return found, a.call("GetItem", func() error {
		found = nil
		if it := a.c.scaler.items[keyOf(id)]; it != nil {
			seen := it.seen()
			found = &seen
		}
		return nil
	})
}

// DeleteItem implements dispatcher.Cluster.
func (a api) DeleteItem(_ context.Context, id bundle.Identity, uid string) (there bool, err error) {
	if a.c.scaler == nil {
		return false, errNoBundles
	}
	return there, a.change("DeleteItem", func() error {
		it := a.c.scaler.items[keyOf(id)]
		if there = it != nil && it.uid == uid; there {
			a.c.scaler.remove(it)
		}
		return nil
	})
}

// Labelled implements dispatcher.Cluster.
func (a api) Labelled(_ context.Context, version, kind, namespace string, of workload.ID) (found []dispatcher.Wrapped, err error) {
	if a.c.scaler == nil {
		return nil, nil // no nodes are asked for
	}
	return found, a.call("Labelled", func() error {
		found = nil
		for _, key := range sortedKeys(a.c.scaler.items) {
			it := a.c.scaler.items[key]
			if it.id.APIVersion == version && it.id.Kind == kind && (of == "" || it.workload == of && it.id.Namespace == namespace) && a.c.w.Bug != BugUnlabelled {
				found = append(found, it.seen())
			}
		}
		return nil
	})
}

// Placeholders implements dispatcher.Cluster.
func (a api) Placeholders(_ context.Context, namespace string, of workload.ID) (found []dispatcher.Placeholder, err error) {
	if a.c.scaler == nil {
		return nil, nil
	}
	if of == "" {
		a.c.w.listsSlowly()
	}
	err = a.call("Placeholders", func() error {
		found = a.c.scaler.placeholdersOf(namespace, of)
		return nil
	})
	if err == nil && namespace == "" && of == "" {
		a.turns.look(found)
	}
	return found, err
}

// ShowPlaceholder implements dispatcher.Cluster.
func (a api) ShowPlaceholder(_ context.Context, seen dispatcher.Placeholder) error {
	return a.change("ShowPlaceholder", func() error {
		a.c.scaler.show(seen)
		return nil
	})
}
