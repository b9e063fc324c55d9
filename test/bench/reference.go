package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// reference is what a reaction cannot be faster than on the machine at the time: a write to the API server, until it is seen.
	reference = "for reference: one write, until it is seen"

	referenceNamespace = "default"
	referenceName      = "bench-reference"
	// referenceData is the key with the number of the write.
	referenceData = "write"
	// referenceInterval is short enough for a good many, and too long to be a load.
	referenceInterval = 500 * time.Millisecond

	writeBegun = "write has begun"
)

// measureReference writes again and again until stop is called, which returns why it could not.
func (b *bench) measureReference(ctx context.Context) (stop func() error, err error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: referenceNamespace, Name: referenceName}}
	if err := b.lab.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot create ConfigMap %s: %w", referenceName, err)
	}
	stopped := make(chan struct{})
	var running sync.WaitGroup
	var failure error // valid when nothing runs any more
	running.Go(func() {
		tick := time.NewTicker(referenceInterval)
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if failure = b.writeReference(ctx, object); failure != nil {
				return
			}
		}
	})
	return func() error {
		close(stopped)
		running.Wait()
		return failure
	}, nil
}

func (b *bench) writeReference(ctx context.Context, object *corev1.ConfigMap) error {
	b.references++
	before := object.DeepCopy()
	object.Data = map[string]string{referenceData: strconv.Itoa(b.references)}
	b.seen.note(writeBegun, referenceSubject(object), true, time.Now())
	if err := b.lab.Client().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write ConfigMap %s: %w", referenceName, err)
	}
	return nil
}

// seeReference notes that a write is seen.
func (o *observer) seeReference(v *corev1.ConfigMap, at time.Time) {
	if v.Namespace != referenceNamespace || v.Name != referenceName || v.Data[referenceData] == "" {
		return
	}
	subject := referenceSubject(v)
	o.act(effect{handOver: reference, subject: subject, at: at, needs: []need{{{writeBegun, subject}}}})
}

func referenceSubject(v *corev1.ConfigMap) string {
	return v.Namespace + "/" + v.Data[referenceData]
}
