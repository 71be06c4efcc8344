package query

import (
	"context"
	"encoding/json"

	"muster.dev/muster/pkg/spec/workload"
)

// ManifestSubject asks for the manifest of a workload, with its secrets masked.
const ManifestSubject = "muster.query.manifest"

// ManifestRequest asks for the manifest of a workload.
type ManifestRequest struct {
	ID workload.ID `json:"id"`
}

// ManifestAnswer has the manifest of a workload as it was submitted, with its secrets masked.
type ManifestAnswer struct {
	// Manifest is absent when none is kept.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// Masked is how many secrets were.
	Masked int `json:"masked"`
}

// Manifest asks for the manifest of a workload.
func (c *Client) Manifest(ctx context.Context, request ManifestRequest) (ManifestAnswer, error) {
	return ask[ManifestAnswer](ctx, c.transport, ManifestSubject, request)
}
