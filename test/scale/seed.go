package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// seeders is how many clusters are written at a time: more does not make two processors faster.
	seeders = 8
	// siteFormat makes the names of clusters, foreignFormat that of namespaces with what is not ours.
	siteFormat, foreignFormat = "site-%05d", "fore-%05d"
)

// seed writes the clusters into etcd, as a backup of it is restored. No client of the API server could: it would refuse UIDs and the status, and give all
// fields to one manager.
func (s *scale) seed(ctx context.Context, c *cloner, a *access) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(seeders)
	for i := 1; i <= s.clusters; i++ {
		group.Go(func() error {
			made := site{index: i, name: fmt.Sprintf(siteFormat, i), filter: s.filterOf(i)}
			var err error
			if made.rewrite, err = a.rewrite(i, made.name); err != nil {
				return err
			}
			return s.write(groupCtx, c, made)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.check(ctx, c)
}

// write writes the objects of a cluster.
func (s *scale) write(ctx context.Context, c *cloner, made site) error {
	first, others, err := c.clone(made)
	if err != nil {
		return err
	}
	revision, err := s.put(ctx, first)
	if err != nil {
		return err
	}
	for i := range others {
		others[i].json = strings.ReplaceAll(others[i].json, sourceRevision, revision)
	}
	_, err = s.put(ctx, others)
	return err
}

func (s *scale) put(ctx context.Context, objects []object) (revision string, err error) {
	operations := make([]operation, 0, len(objects))
	for _, o := range objects {
		operations = append(operations, operation{Put: &pair{Key: []byte(s.prefix + o.key), Value: []byte(o.json)}})
	}
	return s.etcd.write(ctx, operations)
}

// remove deletes objects.
func (s *scale) remove(ctx context.Context, objects []object) error {
	operations := make([]operation, 0, len(objects))
	for _, o := range objects {
		operations = append(operations, operation{Delete: &pair{Key: []byte(s.prefix + o.key)}})
	}
	_, err := s.etcd.write(ctx, operations)
	return err
}

// filterOf is the shard of a cluster; the managers that are measured have the first.
func (s *scale) filterOf(index int) string {
	if s.shards < 2 {
		return ""
	}
	return fmt.Sprintf("shard-%d", index%s.shards)
}

// check tells whether the API server has the clusters as they were written, for the last of them: it serves every kind of object, with the fields that each
// manager owns, by which managers tell what they have applied.
func (s *scale) check(ctx context.Context, c *cloner) error {
	name := fmt.Sprintf(siteFormat, s.clusters)
	for _, o := range c.objects {
		written := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(c.replacer(site{index: s.clusters, name: name}).Replace(o.json)), &written.Object); err != nil {
			return fmt.Errorf("cannot read %s: %w", o.key, err)
		}
		served := &unstructured.Unstructured{}
		served.SetGroupVersionKind(written.GroupVersionKind())
		if err := s.lab.Client().Get(ctx, client.ObjectKeyFromObject(written), served); err != nil {
			return fmt.Errorf("the API server does not have %s: %w", o.key, err)
		}
		if !equality.Semantic.DeepEqual(served.GetManagedFields(), written.GetManagedFields()) || served.GetUID() != written.GetUID() {
			return fmt.Errorf("the API server has %s otherwise than it was written: UID %s, fields of %v", o.key, served.GetUID(), served.GetManagedFields())
		}
	}
	return nil
}
