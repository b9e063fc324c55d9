// Package seed puts many installed clusters on the hub of a laboratory. One is installed there; all others are written
// after it into etcd, as they are after their installation.
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
	// seeders is how many clusters are written at a time: more does not make two processors faster.
	seeders = 8
	// siteFormat makes the names of clusters, foreignFormat that of namespaces with what is not ours.
	siteFormat, foreignFormat = "site-%05d", "fore-%05d"
)

// Seeder makes clusters after one.
type Seeder struct {
	// AuditLog is that of the API server behind all clusters.
	AuditLog string

	lab    *lab.Lab
	etcd   *etcd
	prefix string // of the keys of the hub in etcd
	cloner *cloner
	access *access
}

// New takes an installed cluster, on which nobody works any more, out of the hub as what others are to be made after,
// and furnishes its API server, which stands behind them all. dead is the share of the clusters whose API will not
// answer; those addresses hold until ctx ends.
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
	if s.AuditLog, err = furnish(ctx, cluster.Server()); err != nil {
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

// Objects is how many make a cluster.
func (s *Seeder) Objects() int { return len(s.cloner.objects) }

// Name is the name, and the namespace, of a cluster; they are counted from one.
func Name(index int) string { return fmt.Sprintf(siteFormat, index) }

// Answers reports whether the API of a cluster answers.
func (s *Seeder) Answers(index int) bool { return s.access.portOf(index) == s.access.port }

// Read is how many clusters were read, by what was asked of the API server behind them. A hub with much takes its time
// for the first lists, and until then nobody asks for anything.
func Read(asked audit.Requests) int {
	return len(asked.Where(func(r audit.Request) bool { return r.Verb == "list" && r.Resource == "nodes" }))
}

// Clusters writes clusters into etcd, as a backup of it is restored. No client of the API server could: it would refuse
// UIDs and the status, and give all fields to one manager. filter is the value of the label that says which managers
// reconcile a cluster; empty: there is no such label.
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

// check reports whether the API server has the clusters as they were written, for the last of them: it serves every
// kind of object, with the fields that each manager owns, by which managers tell what they have applied.
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
			return fmt.Errorf("the API server has %s otherwise than it was written: UID %s, fields of %v", o.key, served.GetUID(),
				served.GetManagedFields())
		}
		if err := s.awaitCache(ctx, served); err != nil {
			return err
		}
	}
	return nil
}

// awaitCache waits until the API server has the objects of a kind in its memory, as one has that did not just start.
func (s *Seeder) awaitCache(ctx context.Context, of *unstructured.Unstructured) error {
	some := &unstructured.UnstructuredList{}
	some.SetGroupVersionKind(of.GroupVersionKind())
	cached := &client.ListOptions{Namespace: of.GetNamespace(), Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if err := s.lab.Client().List(ctx, some, cached); err != nil {
		return fmt.Errorf("cannot list what there is like %s %s: %w", of.GetKind(), of.GetName(), err)
	}
	return nil
}
