package apply

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

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
	refused  *lru.Cache[object, refusal]
}

// refusal is the answer of the API server to the creation of an object.
type refusal struct {
	digest [sha256.Size]byte
	err    error
}

// NewTrials returns Trials without remembered refusals. Its memory ends with the process.
func NewTrials(applier *Applier, refusals *reconcile.Backoff) *Trials {
	return &Trials{applier: applier, refusals: refusals, refused: lru.New[object, refusal](maxRefusals)}
}

// Refused returns the remembered refusal of the same content, and the delay after which the request may be sent again.
// Call it for all objects before the first TryCreate if several are tried together.
func (t *Trials) Refused(desired client.Object) (left time.Duration, err error) {
	key, digest, err := t.identify(desired)
	if err != nil {
		return 0, err
	}
	last, ok := t.refused.Get(key)
	if left := t.refusals.Left(attempt(key, digest)); ok && last.digest == digest && left > 0 {
		return left, last.err
	}
	return 0, nil
}

// TryCreate returns the error of [Applier.TryCreate], or the remembered refusal of the same content. After a refusal,
// left is the delay after which the request is sent again; otherwise it is zero.
func (t *Trials) TryCreate(ctx context.Context, desired client.Object) (left time.Duration, err error) {
	if left, err := t.Refused(desired); err != nil {
		return left, err
	}
	key, digest, err := t.identify(desired)
	if err != nil {
		return 0, err
	}
	err = t.applier.TryCreate(ctx, desired)
	if !kube.IsRefused(err) {
		t.refused.Remove(key)
		return 0, err
	}
	t.refused.Add(key, refusal{digest: digest, err: err})
	return t.refusals.Record(attempt(key, digest)), err
}

// attempt returns the key of the creation of an object with some content.
func attempt(key object, digest [sha256.Size]byte) string {
	return fmt.Sprintf("create %s %s %x", key.kind, key.name, digest)
}

func (t *Trials) identify(desired client.Object) (key object, digest [sha256.Size]byte, err error) {
	kind, err := apiutil.GVKForObject(desired, t.applier.client.Scheme())
	if err != nil {
		return key, digest, fmt.Errorf("cannot determine the kind of %T: %w", desired, err)
	}
	digest, err = digestOf(desired)
	return object{kind.GroupKind(), client.ObjectKeyFromObject(desired)}, digest, err
}
