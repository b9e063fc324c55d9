package bench

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/seed"
)

const (
	// shared is the namespace of all clusters at once if the hub also has installed clusters. Only our managers reconcile
	// the installed clusters: Cluster API and CAPM3 would poll each of them, and use the processors that are measured.
	// They can watch one namespace.
	shared = "bench-many"
	// hostLabel selects the hosts of a cluster.
	hostLabel = "bench.example.com/cluster"
)

// observed returns the namespaces that the observer watches; nil: all.
func (o options) observed() map[string]cache.Config {
	if o.installed == 0 {
		return nil
	}
	return map[string]cache.Config{shared: {}, metav1.NamespaceDefault: {}}
}

// simulated returns the namespaces that the simulators watch; nil: all.
func (o options) simulated() map[string]cache.Config {
	if o.installed == 0 {
		return nil
	}
	return map[string]cache.Config{shared: {}, seed.TemplateName: {}}
}

// place returns the namespace, name and hosts of one of the clusters at once.
func (b *bench) place(i int) lab.Mutations {
	if b.options.installed == 0 {
		return lab.Mutations{Namespace: fmt.Sprintf("bench-many-%03d", i)}
	}
	name := fmt.Sprintf("many-%03d", i)
	label := map[string]string{hostLabel: name}
	return lab.Mutations{
		Namespace: shared, ClusterName: name,
		HostOptions: []hosts.HostOption{hosts.WithName(name), hosts.WithLabels(label)}, Edit: func(object *unstructured.Unstructured) {
			if object.GetKind() != "Metal3MachineTemplate" {
				return
			}
			if err := unstructured.SetNestedStringMap(object.Object, label, "spec", "template", "spec", "hostSelector", "matchLabels"); err != nil {
				panic(err) // all tests apply the samples
			}
		},
	}
}

// putInstalled writes the installed clusters, and waits until our managers have read them and are quiet.
func (b *bench) putInstalled(ctx context.Context) error {
	if b.options.installed == 0 {
		return nil
	}
	b.sayf("%d installed clusters (%s)", b.options.installed, singleNode)
	cluster, err := seed.Install(ctx, b.lab, singleNode)
	if err != nil {
		return err
	}
	if _, err := b.awaitSilence(ctx, time.Now()); err != nil {
		return err
	}
	begin := time.Now()
	var sites *audit.Follower
	err = b.lab.While(ctx, func() error {
		for _, name := range []string{env.Core, env.Metal3} {
			p := b.lab.Env.Manager(name)
			p.Args = append(p.Args, "--namespace="+shared)
		}
		seeder, err := seed.New(ctx, b.lab, cluster, 0)
		if err != nil {
			return err
		}
		sites = audit.Follow(seeder.AuditLog)
		if _, err := sites.Next(); err != nil { // former requests do not count
			return err
		}
		return seeder.Clusters(ctx, b.options.installed, func(int) string { return "" })
	})
	if err != nil {
		return err
	}
	if err := awaitRead(ctx, sites, b.options.installed); err != nil {
		return err
	}
	quiet, err := b.awaitSilence(ctx, time.Now())
	b.sayf("they exist and our managers are quiet after %s", quiet.Sub(begin).Round(time.Second))
	return err
}

// awaitRead waits until the control plane manager has read a number of clusters, which it does after it connects.
func awaitRead(ctx context.Context, sites *audit.Follower, clusters int) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for read := 0; ; {
		requests, err := sites.Next()
		if err != nil {
			return err
		}
		read += seed.Read(requests)
		if read >= clusters {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
