package reconcile

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// refreshDelay is how long an object may stay unchanged before it is touched. The delay doubles with each touch up to
// maxRefreshDelay.
const refreshDelay, maxRefreshDelay = 3 * time.Minute, 2 * time.Hour

// Refresher touches objects whose status their controller has not changed for long.
//
// assisted-service publishes the status of a host or cluster when a notification arrives. If its database does not
// answer at that moment, it drops the notification and never repeats it (its controller_event_wrapper.go). The object
// then keeps an old status until any change makes assisted-service publish it again.
type Refresher struct {
	client     client.Writer
	owner      client.FieldOwner
	clock      clock.PassiveClock
	annotation string
	unchanged  *Backoff
}

// NewRefresher returns a Refresher that sets an annotation to the time of the touch.
func NewRefresher(c client.Writer, owner client.FieldOwner, annotation string, clk clock.PassiveClock) *Refresher {
	return &Refresher{
		client: c, owner: owner, clock: clk, annotation: annotation,
		unchanged: NewBackoff(clk, refreshDelay, maxRefreshDelay),
	}
}

// Refresh touches an object that is in the same state for too long. state describes what the object shows; another
// state begins another wait. It returns the delay after which the object has to be checked again.
func (r *Refresher) Refresh(ctx context.Context, obj client.Object, state string) (time.Duration, error) {
	key := Key(state+" "+string(obj.GetUID()), obj)
	if left := r.unchanged.Left(key); left > 0 {
		return left, nil
	}
	if r.unchanged.Delay(key) > 0 {
		touched, _ := obj.DeepCopyObject().(client.Object) // the response must not get into the cache
		now := r.clock.Now().UTC().Format(time.RFC3339)
		if err := kube.Annotate(ctx, r.client, touched, map[string]*string{r.annotation: ptr.To(now)}, r.owner); err != nil {
			return 0, err
		}
	}
	return r.unchanged.Record(key), nil
}
