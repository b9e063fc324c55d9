// Package seed creates many installed clusters on the hub of a laboratory. It installs one cluster, and writes clones of
// its objects into etcd.
package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// seeders is the number of concurrent writes, which keep two processors busy.
	seeders = 8
	// siteFormat is the format of the names of clusters, foreignFormat of the namespaces of foreign objects.
	siteFormat, foreignFormat = "site-%05d", "fore-%05d"
)

// Seeder clones an installed cluster.
type Seeder struct {
	// AuditLog is the audit log of the API server of all clusters.
	AuditLog string

	lab    *lab.Lab
	etcd   *etcd
	prefix string // of the keys of the hub in etcd
	cloner *cloner
	access *access
}

// New removes an installed cluster, which no manager reconciles, from the hub as the template of the clones. It fills the
// API server of the cluster, which serves all clones. dead is the share of clones whose API does not answer. Their
// addresses are valid until ctx ends.
func New(ctx context.Context, l *lab.Lab, cluster *lab.Cluster, dead float64) (*Seeder, error) {
	url, prefix := l.Env.Etcd()
	s := &Seeder{lab: l, prefix: prefix, etcd: &etcd{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: seeders}}}}
	objects, err := readTemplate(ctx, s.etcd, s.prefix)
	if err != nil {
		return nil, err
	}
	if err := s.remove(ctx, objects); err != nil {
		return nil, err
	}
	if s.AuditLog, err = fill(ctx, cluster.Server()); err != nil {
		return nil, err
	}
	if s.access, err = newAccess(cluster.Server().Authority(), cluster.Server().Port); err != nil {
		return nil, err
	}
	s.access.dead = dead
	if err := startDead(ctx, s.access, l.Env.Group().Port); err != nil {
		return nil, err
	}
	api, err := cluster.Server().Client()
	if err != nil {
		return nil, err
	}
	kept, err := shared(ctx, api)
	if err != nil {
		return nil, err
	}
	s.cloner = newCloner(objects, kept...)
	return s, nil
}

// Objects returns the number of objects of a cluster.
func (s *Seeder) Objects() int { return len(s.cloner.objects) }

// Name returns the name and the namespace of a cluster. The first index is one.
func Name(index int) string { return fmt.Sprintf(siteFormat, index) }

// Answers reports whether the API of a cluster answers.
func (s *Seeder) Answers(index int) bool { return s.access.portOf(index) == s.access.port }

// Read returns the number of clusters that were read, by the requests to their API server. Managers read no cluster before
// the first lists of the hub, which take long on a large hub.
func Read(requests audit.Requests) int {
	return len(requests.Where(func(r audit.Request) bool { return r.Verb == "list" && r.Resource == "nodes" }))
}

// Clusters writes clusters into etcd, like the restore of a backup. The API server would set other UIDs, drop the status,
// and record one field manager. filter returns the value of the label that selects the managers of a cluster; empty: no
// label.
func (s *Seeder) Clusters(ctx context.Context, count int, filter func(index int) string) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(seeders)
	for i := 1; i <= count; i++ {
		group.Go(func() error {
			made := site{index: i, name: Name(i), filter: filter(i)}
			var err error
			if made.rewrite, err = s.access.rewrite(i, made.name); err != nil {
				return err
			}
			return s.write(groupCtx, made)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.check(ctx, count)
}

// write writes the objects of a cluster.
func (s *Seeder) write(ctx context.Context, made site) error {
	first, others, err := s.cloner.clone(made)
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

func (s *Seeder) put(ctx context.Context, objects []object) (revision string, err error) {
	operations := make([]operation, 0, len(objects))
	for _, o := range objects {
		operations = append(operations, operation{Put: &pair{Key: []byte(s.prefix + o.key), Value: []byte(o.json)}})
	}
	return s.etcd.write(ctx, operations)
}

// remove deletes objects.
func (s *Seeder) remove(ctx context.Context, objects []object) error {
	operations := make([]operation, 0, len(objects))
	for _, o := range objects {
		operations = append(operations, operation{Delete: &pair{Key: []byte(s.prefix + o.key)}})
	}
	_, err := s.etcd.write(ctx, operations)
	return err
}

// check returns an error unless the API server serves the objects of the last cluster as they were written. Managers
// read their applied fields from the managed fields.
func (s *Seeder) check(ctx context.Context, last int) error {
	replacer := s.cloner.replacer(site{index: last, name: Name(last)})
	for _, o := range s.cloner.objects {
		written := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(replacer.Replace(o.json)), &written.Object); err != nil {
			return fmt.Errorf("cannot read %s: %w", o.key, err)
		}
		served := &unstructured.Unstructured{}
		served.SetGroupVersionKind(written.GroupVersionKind())
		if err := s.lab.Client().Get(ctx, client.ObjectKeyFromObject(written), served); err != nil {
			return fmt.Errorf("the API server does not have %s: %w", o.key, err)
		}
		if !equality.Semantic.DeepEqual(served.GetManagedFields(), written.GetManagedFields()) || served.GetUID() != written.GetUID() {
			return fmt.Errorf("the API server serves %s with other content: UID %s, managed fields %v", o.key, served.GetUID(),
				served.GetManagedFields())
		}
		if err := s.awaitCache(ctx, served); err != nil {
			return err
		}
	}
	return nil
}

// awaitCache waits until the API server has the objects of a kind in its cache, as if it had run for a longer time.
func (s *Seeder) awaitCache(ctx context.Context, of *unstructured.Unstructured) error {
	some := &unstructured.UnstructuredList{}
	some.SetGroupVersionKind(of.GroupVersionKind())
	cached := &client.ListOptions{Namespace: of.GetNamespace(), Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if err := s.lab.Client().List(ctx, some, cached); err != nil {
		return fmt.Errorf("cannot list objects of the kind of %s %s: %w", of.GetKind(), of.GetName(), err)
	}
	return nil
}
