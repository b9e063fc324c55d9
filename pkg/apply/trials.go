package apply

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// maxRefusals bounds the remembered refusals. An evicted refusal costs one more request.
const maxRefusals = 1024

// Trials runs TryCreate of an Applier, and repeats a refused request at most once in an interval. Otherwise each
// event would send the request through all admission webhooks. Other content is tried at once.
type Trials struct {
	applier  *Applier
	clock    clock.PassiveClock
	interval time.Duration
	refused  *lru.Cache[object, refusal]
}

// refusal is the answer of the API server to the creation of an object.
type refusal struct {
	digest [sha256.Size]byte
	err    error
	at     time.Time
}

// NewTrials returns Trials without remembered refusals. Its memory ends with the process.
func NewTrials(applier *Applier, c clock.PassiveClock, interval time.Duration) *Trials {
	return &Trials{applier: applier, clock: c, interval: interval, refused: lru.New[object, refusal](maxRefusals)}
}

// Refused returns the remembered refusal of the same content, and the delay after which the request may be sent again.
// Call it for all objects before the first TryCreate if several are tried together.
func (t *Trials) Refused(desired client.Object) (left time.Duration, err error) {
	key, digest, err := t.identify(desired)
	if err != nil {
		return 0, err
	}
	last, ok := t.refused.Get(key)
	if left := t.interval - t.clock.Now().Sub(last.at); ok && last.digest == digest && left > 0 {
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
	t.refused.Remove(key)
	err = t.applier.TryCreate(ctx, desired)
	if !kube.IsRefused(err) {
		return 0, err
	}
	t.refused.Add(key, refusal{digest: digest, err: err, at: t.clock.Now()})
	return t.interval, err
}

func (t *Trials) identify(desired client.Object) (key object, digest [sha256.Size]byte, err error) {
	kind, err := apiutil.GVKForObject(desired, t.applier.client.Scheme())
	if err != nil {
		return key, digest, fmt.Errorf("cannot determine the kind of %T: %w", desired, err)
	}
	digest, err = digestOf(desired)
	return object{kind.GroupKind(), client.ObjectKeyFromObject(desired)}, digest, err
}
