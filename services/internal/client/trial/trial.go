// Package trial reads the manifests of a what-if: workloads that would be submitted.
//
// Unlike a submission, which Muster reads on its side, a what-if has workloads as they would be
// read, so the client reads them.
package trial

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/manifest"
)

// Options are what manifests leave open.
type Options struct {
	// Queue is to which they are submitted; empty for those that their labels name.
	Queue string
	// Namespace is of those that name none; empty for that of the queue.
	Namespace string
	// Submitter is who submits, such as http/ann; empty for the caller.
	Submitter string
	// RunTime is how long those run that do not declare it; zero for what is learned.
	RunTime time.Duration
}

// Read returns the workloads of the Ray objects in a file.
func Read(content []byte, o Options) ([]query.WhatIfSubmission, error) {
	documents := manifest.Split(content)
	if len(documents) > query.MaxWhatIfChanges {
		return nil, fmt.Errorf("%d manifests: want at most %d", len(documents), query.MaxWhatIfChanges)
	}
	all := make([]query.WhatIfSubmission, 0, len(documents))
	for i, document := range documents {
		read, err := o.read(document, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document, err)
		}
		all = append(all, read)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no manifest in it")
	}
	return all, nil
}

func (o Options) read(document manifest.Document, i int) (submission query.WhatIfSubmission, err error) {
	object, err := ray.Read(document.Raw)
	if err != nil {
		return submission, err
	}
	queue := cmp.Or(o.Queue, document.Queue)
	switch {
	case queue == "":
		return submission, fmt.Errorf("to which queue? Name one, here or in its label %s", kube.QueueNameLabel)
	case document.Queue != "" && document.Queue != queue:
		return submission, fmt.Errorf("its label %s is %.253q, but it would be submitted to queue %.253q; want the same", kube.QueueNameLabel, document.Queue, queue)
	}
	class, err := classOf(object.Manifest)
	if err != nil {
		return submission, err
	}
	submission = query.WhatIfSubmission{PriorityClass: class, Workload: workload.Workload{
		ID: event.WorkloadID("whatif", strconv.Itoa(i)), Queue: queue, Namespace: cmp.Or(object.Namespace, o.Namespace),
		Kind: object.Kind, Name: object.Name, Digest: "whatif", PodSets: object.PodSets, Life: object.Life, Submitter: o.Submitter,
	}}
	if submission.Life.RunTime == 0 {
		submission.Life.RunTime = workload.Duration(o.RunTime)
	}
	return submission, nil
}

// classOf is the priority class that the labels of an object name.
func classOf(object json.RawMessage) (string, error) {
	var labelled struct {
		Metadata struct {
			Labels map[string]any `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &labelled); err != nil {
		return "", fmt.Errorf("read its labels: %w", err)
	}
	return appwrapper.PriorityClassOf(labelled.Metadata.Labels), nil
}
