package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// step is a step of a journey.
type step string

const (
	// install waits until the cluster is installed, with all Machines.
	install step = "install"
	// addWorker adds a worker; before install this happens during the installation.
	addWorker step = "add-worker"
	// removeWorker removes a worker, and waits until it is deleted.
	removeWorker step = "remove-worker"
	// replaceWorker and replaceMaster delete a Machine, and wait until another one runs.
	replaceWorker step = "replace-worker"
	replaceMaster step = "replace-master"
	// growMasters adds two masters, and waits until they run; shrinkMasters removes them again.
	growMasters   step = "grow-masters"
	shrinkMasters step = "shrink-masters"
	// settle waits until the cluster has its desired state.
	settle step = "settle"
	// remove deletes the cluster, and waits until all its objects are deleted.
	remove step = "remove"
	// recordAbandonment deletes the cluster at any time of its installation.
	abandon step = "abandon"
	// linger waits for such a time.
	linger step = "linger"
	// reapply deletes the cluster, and applies it again as soon as its Cluster is deleted. Caches and foreign
	// controllers still know the names.
	reapply step = "reapply"
)

// workersOf are the numbers of workers of samples.
var workersOf = map[string]int32{"ha": 2, "ha-disk-image": 2}

// clusterName is the name of each cluster; each has its own namespace.
const clusterName = "c"

// poll is the polling interval of a step.
const poll = 500 * time.Millisecond

// activeJourney is a cluster on its journey.
type activeJourney struct {
	*round
	journey

	cluster *lab.Cluster
	// hosts is the number of BareMetalHosts in its namespace.
	hosts   int
	workers int32
	// retried is the UID of the installation for which another attempt was requested.
	retried types.UID
	// forged are the names of forged certificate requests, with their purposes.
	forged map[string]string
	// nodeMissingSince is since when a Machine without a Node blocks the import.
	nodeMissingSince time.Time
}

// travel runs all steps. Its error names the failed step and its blocker.
func (r *round) travel(ctx context.Context, j journey) error {
	mutations := lab.Mutations{
		Namespace: j.namespace, ClusterName: clusterName, ExtraHosts: 2, Divert: r.toCluster(j.namespace),
		OwnRepository: true,
	}
	if j.sample == "static-network" {
		mutations.ExtraHosts = 0 // the sample has no addresses for more hosts
	}
	if slices.Contains(j.steps, replaceMaster) || slices.Contains(j.steps, growMasters) {
		mutations.EtcdMembers = true
	}
	cluster, err := r.lab.ApplySample(ctx, j.sample, mutations)
	if err != nil {
		return err
	}
	t := r.begin(j, cluster, len(cluster.Hosts))
	for _, s := range j.steps {
		begin := time.Now()
		if s == reapply {
			t, err = t.reapply(ctx)
		} else {
			err = t.run(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("cluster %s (%s), step %s: %w", cluster.Key(), j.sample, s, err)
		}
		r.report.step(s, time.Since(begin))
		r.sayf("%s %s: %s after %s", j.namespace, j.sample, s, time.Since(begin).Round(time.Second))
	}
	return nil
}

func (t *activeJourney) run(ctx context.Context, s step) error {
	switch s {
	case install, settle:
		return t.settled(ctx)
	case addWorker:
		return t.scale(ctx, 1)
	case removeWorker:
		t.follower.requestScaleDown(t.namespace, 1, 0)
		if err := t.scale(ctx, -1); err != nil {
			return err
		}
		return t.settled(ctx)
	case growMasters:
		return t.scaleMasters(ctx, mostMasters)
	case shrinkMasters:
		t.follower.requestScaleDown(t.namespace, 0, mostMasters-fewestMasters)
		return t.scaleMasters(ctx, fewestMasters)
	case replaceWorker, replaceMaster:
		return t.replace(ctx, s == replaceMaster)
	case linger:
		return t.linger(ctx)
	case abandon:
		if err := t.linger(ctx); err != nil {
			return err
		}
	}
	if err := t.delete(ctx); err != nil {
		return err
	}
	return t.awaitDeletion(ctx)
}

// linger waits for any time of an installation; the cluster is deleted then. A Cluster that Cluster API has not
// reconciled has no finalizer, and its control plane no owner: a deletion would leave the control plane. Since
// Cluster API 1.14, a Cluster without topology is an owner that is not the controller.
func (t *activeJourney) linger(ctx context.Context) error {
	t.follower.recordAbandonment(t.namespace)
	wait(ctx, t.patience)
	return t.cluster.Wait(ctx, "reconciled by Cluster API", func(s *lab.State) bool {
		return s.ControlPlane != nil && util.HasOwner(s.ControlPlane.OwnerReferences, clusterv1.GroupVersion.String(), []string{"Cluster"})
	})
}

// delete deletes the cluster, and waits until its Cluster is deleted.
func (t *activeJourney) delete(ctx context.Context) error {
	t.recordDeletion(t.namespace)
	t.judgeWipes()
	t.follower.recordDeletion(t.namespace)
	if err := t.judgeForgeries(ctx); err != nil {
		return err
	}
	return t.cluster.Explain(t.cluster.Delete(ctx))
}

// reapply deletes the cluster, and applies it again with the same hosts.
func (t *activeJourney) reapply(ctx context.Context) (*activeJourney, error) {
	state, err := t.cluster.State(ctx)
	if err != nil {
		return t, err
	}
	if err := t.delete(ctx); err != nil {
		return t, err
	}
	if err := t.judgeDeletions(); err != nil { // the deletions so far were requested
		return t, err
	}
	t.follower.reapplied(t.namespace)
	cluster, err := t.lab.ApplySample(ctx, t.sample, lab.Mutations{
		Namespace: t.namespace, ClusterName: clusterName,
		ExtraHosts: -state.Wanted, Divert: t.toCluster(t.namespace), OwnRepository: true,
	})
	if err != nil {
		return t, err
	}
	return t.begin(t.journey, cluster, t.hosts), nil
}

// settled waits until the cluster is installed with all wanted Machines, each with its own host and Agent.
func (t *activeJourney) settled(ctx context.Context) error {
	return t.await(ctx, "installed with all Machines", func(s *lab.State) bool {
		return s.ControlPlane.Status.Installation.Phase == controlplanev1.InstallationInstalled
	})
}

// await waits until a cluster is available and settled, and another condition holds. Its error names what is not
// settled.
func (t *activeJourney) await(ctx context.Context, what string, condition func(*lab.State) bool) error {
	var remaining []string
	err := t.cluster.Wait(ctx, what, func(s *lab.State) bool {
		remaining = t.problems(ctx, s)
		return s.Available() && len(remaining) == 0 && condition(s)
	})
	if err != nil && len(remaining) > 0 {
		return fmt.Errorf("%w\n%s", err, strings.Join(remaining, "\n"))
	}
	if err != nil {
		return err
	}
	t.judgeWipes()
	err = t.judgeDeletions() // the deletions so far, for another installation
	t.follower.finishRetry(t.namespace)
	return err
}

// judgeWipes checks the wiped etcd members.
func (t *activeJourney) judgeWipes() {
	for _, w := range t.cluster.WipedMembers() {
		t.follower.judgeWipe(t.namespace, w)
	}
}

// problems names Machines that share a host, or whose host was installed with foreign settings, and InfraEnvs
// without a Machine. An InfraEnv that was deleted is not created again for an installed host.
func (t *activeJourney) problems(ctx context.Context, s *lab.State) []string {
	var findings []string
	taken := map[string]string{}
	for _, m := range s.Machines {
		if m.Host == nil || m.Config == nil || m.Infra == nil {
			findings = append(findings, m.Name+" has no host, config or infra machine")
			continue
		}
		if other := taken[m.Host.Name]; other != "" {
			findings = append(findings, m.Name+" and "+other+" are the same host")
		}
		taken[m.Host.Name] = m.Name
		if agent := m.Agent; agent != nil && agent.Spec.Approved &&
			(agent.Spec.Hostname == foreignHostname || string(agent.Spec.Role) != m.Role()) {
			findings = append(findings, fmt.Sprintf("the host of %s was installed as %s %q", m.Name, agent.Spec.Role, agent.Spec.Hostname))
		}
	}
	infraEnvs := &aiv1beta1.InfraEnvList{}
	if err := t.lab.Client().List(ctx, infraEnvs, client.InNamespace(t.namespace)); err != nil {
		return append(findings, err.Error())
	}
	for _, infraEnv := range infraEnvs.Items {
		if !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.Name == infraEnv.Name }) {
			findings = append(findings, "InfraEnv "+infraEnv.Name+" is of no Machine")
		}
		if infraEnv.Labels[clusterv1.ClusterNameLabel] != t.cluster.Name || infraEnv.Labels[bootstrapv1.ConfigNameLabel] == "" {
			findings = append(findings, "InfraEnv "+infraEnv.Name+" lacks labels by which it is found")
		}
	}
	return findings
}

// scale changes the number of workers.
func (t *activeJourney) scale(ctx context.Context, more int32) error {
	t.workers += more
	return t.cluster.Scale(ctx, t.workers)
}

// Clusters have three masters, or five for a while.
const fewestMasters, mostMasters = 3, 5

// scaleMasters sets the number of masters, and waits until they and their etcd members run.
func (t *activeJourney) scaleMasters(ctx context.Context, replicas int32) error {
	if err := t.cluster.ScaleControlPlane(ctx, replicas); err != nil {
		return err
	}
	return t.await(ctx, fmt.Sprintf("well with %d masters", replicas), func(*lab.State) bool { return t.cluster.EtcdSettled(ctx) == nil })
}

// replace deletes a Machine, and waits for its replacement.
func (t *activeJourney) replace(ctx context.Context, master bool) error {
	state, err := t.cluster.State(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(state.Machines, func(m lab.Machine) bool { return m.IsControlPlane() == master && m.DeletionTimestamp.IsZero() })
	if i < 0 {
		return errors.New("no Machine can be replaced")
	}
	gone := state.Machines[i]
	t.follower.requestDeletion(gone.Machine)
	if err := t.cluster.DeleteMachine(ctx, gone); client.IgnoreNotFound(err) != nil {
		return err
	}
	return t.await(ctx, "well with a Machine in place of "+gone.Name, func(s *lab.State) bool {
		return !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.UID == gone.UID }) &&
			(t.cluster.Etcd() == nil || t.cluster.EtcdSettled(ctx) == nil)
	})
}

// leftBehind are the kinds of objects that must not be left of a deleted cluster. Secrets of the user are
// excluded.
var leftBehind = []string{
	"Cluster", "Machine", "Metal3Machine", "OpenshiftAssistedConfig", "OpenshiftAssistedControlPlane", "InfraEnv", "Agent",
	"AgentClusterInstall", "ClusterDeployment", "Secret",
}

// awaitDeletion waits until no object is left and all hosts are free.
func (t *activeJourney) awaitDeletion(ctx context.Context) error {
	for {
		left, err := t.remains(ctx)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("left behind: %s", strings.Join(left, ", ")), err, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

func (t *activeJourney) remains(ctx context.Context) ([]string, error) {
	var left []string
	for _, kind := range lab.Kinds {
		if !slices.Contains(leftBehind, kind.Kind) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := t.lab.Client().List(ctx, list, client.InNamespace(t.namespace)); err != nil {
			return nil, fmt.Errorf("cannot list what is left: %w", err)
		}
		for _, object := range list.Items {
			if kind.Kind != "Secret" || !t.isOfUser(object.GetName()) {
				left = append(left, kind.Kind+" "+object.GetName())
			}
		}
	}
	sets := &hivev1.ClusterImageSetList{}
	if err := t.lab.Client().List(ctx, sets); err != nil {
		return nil, fmt.Errorf("cannot list ClusterImageSets: %w", err)
	}
	for _, set := range sets.Items {
		if strings.HasPrefix(set.Name, t.namespace+"-") {
			left = append(left, "ClusterImageSet "+set.Name)
		}
	}
	hosts, err := t.occupied(ctx)
	return append(left, hosts...), err
}

// isOfUser reports whether a Secret is the user's: credentials of BMCs, the pull secret, and a kubeconfig that
// the user created.
func (t *activeJourney) isOfUser(name string) bool {
	return strings.HasSuffix(name, "-bmc") || name == t.cluster.Name+"-pull-secret" || name == secret.Name(t.cluster.Name,
		secret.Kubeconfig) && t.hasUserKubeconfig(t.namespace)
}

// occupied names the hosts that are not free, and the number of missing ones.
func (t *activeJourney) occupied(ctx context.Context) ([]string, error) {
	hosts := &metal3api.BareMetalHostList{}
	if err := t.lab.Client().List(ctx, hosts, client.InNamespace(t.namespace)); err != nil {
		return nil, fmt.Errorf("cannot list BareMetalHosts: %w", err)
	}
	var findings []string
	for _, host := range hosts.Items {
		if host.Status.Provisioning.State != metal3api.StateAvailable || host.Spec.ConsumerRef != nil ||
			t.lab.Rack.Host(path.Join(host.Namespace, host.Name)).PoweredOn() {
			findings = append(findings, fmt.Sprintf("BareMetalHost %s (%s)", host.Name, host.Status.Provisioning.State))
		}
	}
	if missing := t.hosts - len(hosts.Items); missing > 0 {
		findings = append(findings, fmt.Sprintf("%d BareMetalHosts are missing", missing))
	}
	return findings, nil
}
