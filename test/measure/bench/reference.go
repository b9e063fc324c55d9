package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// agentReference is like [results.Reference], for an Agent. The API server serves the watches of each kind from a cache.
// The cache of a kind with many writes lags: assisted-service writes Agents continuously.
const agentReference = "for reference: one write to an Agent"

// references are the reference writes, in the order of the tables.
var references = []string{results.Reference, agentReference}

// toAgents are the hand-overs that end with a write to an Agent.
var toAgents = map[string]bool{hostBound: true, hostApproved: true, lateWorkerBound: true, agentReleased: true}

const (
	referenceNamespace = "default"
	referenceName      = "bench-reference"
	// referenceAnnotation has the number of the write: the time at which it was due.
	referenceAnnotation = "example.com/write"
	// referenceInterval gives many samples, and a negligible load.
	referenceInterval = 500 * time.Millisecond

	writeBegun = "write has begun"
)

// measureReferences writes periodically until stop is called. stop returns the error of a write.
func (b *bench) measureReferences(ctx context.Context) (stop func() error, err error) {
	meta := metav1.ObjectMeta{Namespace: referenceNamespace, Name: referenceName}
	objects := map[string]client.Object{
		results.Reference: &corev1.ConfigMap{ObjectMeta: meta},
		// Our managers and assisted-service ignore an Agent without InfraEnv.
		agentReference: &aiv1beta1.Agent{ObjectMeta: meta},
	}
	for what, object := range objects {
		if err := b.lab.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("cannot create the object of %q: %w", what, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	running, ctx := errgroup.WithContext(ctx)
	for what, object := range objects {
		running.Go(func() error { return b.keepWriting(ctx, what, object) })
	}
	return func() error {
		cancel()
		return running.Wait()
	}, nil
}

// keepWriting writes to an object until ctx ends.
func (b *bench) keepWriting(ctx context.Context, what string, object client.Object) error {
	tick := time.NewTicker(referenceInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-tick.C:
			if err := b.writeReference(ctx, what, object, at); err != nil && ctx.Err() == nil {
				return fmt.Errorf("cannot write the object of %q: %w", what, err)
			}
		}
	}
}

func (b *bench) writeReference(ctx context.Context, what string, object client.Object, at time.Time) error {
	number := strconv.FormatInt(at.UnixNano(), 10)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, referenceAnnotation, number))
	b.seen.note(writeBegun, what+" "+number, true, time.Now())
	return b.lab.Client().Patch(ctx, object, patch)
}

// seeReference records that a reference write was seen. It reports whether the object is a reference object.
func (o *observer) seeReference(what string, v client.Object, at time.Time) bool {
	if v.GetNamespace() != referenceNamespace || v.GetName() != referenceName {
		return false
	}
	if number := v.GetAnnotations()[referenceAnnotation]; number != "" {
		subject := what + " " + number
		o.act(effect{handOver: what, subject: subject, at: at, needs: []need{{{writeBegun, subject}}}})
	}
	return true
}
