package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// maxRefusals bounds the remembered refusals. An evicted refusal costs one more request.
const maxRefusals = 1024

// Trials runs TryCreate of an Applier, and repeats a refused request with the delays of a Backoff. Otherwise each event
// would send the request through all admission webhooks. Other content is tried at once.
type Trials struct {
	applier  *Applier
	refusals *reconcile.Backoff
	// refused are the answers of the API server, by attempt. Contents that alternate have an answer each.
	refused *lru.Cache[string, error]
}

// NewTrials returns Trials without remembered refusals. Its memory ends with the process.
func NewTrials(applier *Applier, refusals *reconcile.Backoff) *Trials {
	return &Trials{applier: applier, refusals: refusals, refused: lru.New[string, error](maxRefusals)}
}

// Refused returns the remembered refusal of the same content. Then again gets the delay after which the request may be
// sent again. Call it for all objects before the first TryCreate if several are tried together.
func (t *Trials) Refused(again *reconcile.Requeue, desired client.Object) error {
	attempt, err := t.attempt(desired)
	if err != nil {
		return err
	}
	return t.remembered(again, attempt)
}

// TryCreate returns the error of [Applier.TryCreate], or the remembered refusal of the same content. After a refusal,
// again gets the delay after which the request is sent again.
func (t *Trials) TryCreate(ctx context.Context, again *reconcile.Requeue, desired client.Object) error {
	attempt, err := t.attempt(desired)
	if err != nil {
		return err
	}
	if err := t.remembered(again, attempt); err != nil {
		return err
	}
	err = t.applier.TryCreate(ctx, desired)
	switch {
	case kube.IsRefused(err):
		t.refused.Add(attempt, err)
		again.In(t.refusals.Record(attempt))
	case err == nil:
		t.refusals.Reset(attempt)
	}
	return err
}

// remembered returns the refusal of an attempt whose delay has not ended.
func (t *Trials) remembered(again *reconcile.Requeue, attempt string) error {
	left := t.refusals.Left(attempt)
	refusal, ok := t.refused.Get(attempt)
	if !ok || left == 0 {
		return nil
	}
	again.In(left)
	return refusal
}

// attempt identifies the creation of an object with some content.
func (t *Trials) attempt(desired client.Object) (string, error) {
	kind, err := apiutil.GVKForObject(desired, t.applier.client.Scheme())
	if err != nil {
		return "", fmt.Errorf("cannot determine the kind of %T: %w", desired, err)
	}
	digest, err := digestOf(desired)
	return fmt.Sprintf("create %s %s %x", kind.GroupKind(), client.ObjectKeyFromObject(desired), digest), err
}
