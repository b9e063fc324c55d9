package main

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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/seed"
)

const (
	// shared is the namespace of all clusters at once where others are installed beside them. Those are left to our
	// managers: Cluster API and CAPM3 would connect to each of them and ask it for its health again and again, and take
	// the processors from what is measured. They can look at one namespace.
	shared = "bench-many"
	// hostLabel tells which hosts are for which cluster.
	hostLabel = "bench.example.com/cluster"
)

// observed are the namespaces that are watched for reactions; none: all.
func (o options) observed() map[string]cache.Config {
	if o.installed == 0 {
		return nil
	}
	return map[string]cache.Config{shared: {}, metav1.NamespaceDefault: {}}
}

// simulated are those that the simulators look at.
func (o options) simulated() map[string]cache.Config {
	if o.installed == 0 {
		return nil
	}
	return map[string]cache.Config{shared: {}, seed.TemplateName: {}}
}

// place says where one of the clusters at once is installed.
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
				panic(err) // the samples are applied by every test
			}
		},
	}
}

// putInstalled puts clusters beside that are installed, and waits until our managers have looked at them.
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
	var asked *audit.Follower
	err = b.lab.While(ctx, func() error {
		for _, name := range []string{env.Core, env.Metal3} {
			p := b.lab.Env.Manager(name)
			p.Args = append(p.Args, "--namespace="+shared)
		}
		seeder, err := seed.New(ctx, b.lab, cluster, 0)
		if err != nil {
			return err
		}
		asked = audit.Follow(seeder.AuditLog)
		if _, err := asked.Next(); err != nil { // what others have asked
			return err
		}
		return seeder.Clusters(ctx, b.options.installed, func(int) string { return "" })
	})
	if err != nil {
		return err
	}
	if err := awaitRead(ctx, asked, b.options.installed); err != nil {
		return err
	}
	quiet, err := b.awaitSilence(ctx, time.Now())
	b.sayf("they are there, and our managers quiet, after %s", quiet.Sub(begin).Round(time.Second))
	return err
}

// awaitRead waits until so many clusters were read by the control plane manager, as it does when it has connected to one.
func awaitRead(ctx context.Context, asked *audit.Follower, clusters int) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for read := 0; ; {
		requests, err := asked.Next()
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
