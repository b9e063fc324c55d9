package lab

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	writeInterval  = 100 * time.Millisecond
	writeTimeout   = 2 * time.Second
	writeNamespace = metav1.NamespaceDefault
	writeLabel     = "test.openshift-agent/written"
)

// Writer is a client that writes to the API of a cluster continuously.
type Writer struct {
	end     context.CancelFunc
	running sync.WaitGroup
	// acknowledged is owned by the writing goroutine until it ends.
	acknowledged []string
}

// StartWriting creates a ConfigMap in the cluster every 100 ms, until [Writer.Stop]. A write without response
// within 2 s is retried with the same name.
func (c *Cluster) StartWriting(ctx context.Context) *Writer {
	ctx, end := context.WithCancel(ctx)
	w := &Writer{end: end}
	w.running.Go(func() {
		tick := time.NewTicker(writeInterval)
		defer tick.Stop()
		begin := time.Now().UnixMilli()
		for n := 0; ctx.Err() == nil; {
			name := fmt.Sprintf("written-%d-%05d", begin, n)
			if c.write(ctx, name) == nil {
				w.acknowledged = append(w.acknowledged, name)
				n++
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return w
}

// Stop stops the writes and returns the names of the acknowledged ones.
func (w *Writer) Stop() []string {
	w.end()
	w.running.Wait()
	return w.acknowledged
}

func (c *Cluster) write(ctx context.Context, name string) error {
	workload, err := c.workload.running()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = workload.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: writeNamespace, Name: name, Labels: map[string]string{writeLabel: ""}},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil // written, although the response was lost
	}
	return err
}

// Lost returns the acknowledged writes that the cluster no longer has.
func (c *Cluster) Lost(ctx context.Context, acknowledged []string) ([]string, error) {
	workload, err := c.workload.running()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := workload.List(ctx, list, client.InNamespace(writeNamespace), client.HasLabels{writeLabel}); err != nil {
		return nil, fmt.Errorf("cannot list the written ConfigMaps: %w", err)
	}
	existing := map[string]bool{}
	for i := range list.Items {
		existing[list.Items[i].Name] = true
	}
	return slices.DeleteFunc(slices.Clone(acknowledged), func(name string) bool { return existing[name] }), nil
}
