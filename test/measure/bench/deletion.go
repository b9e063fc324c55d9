package bench

import (
	"fmt"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// seeDeletion records the deletion of a control-plane Machine. Cluster API waits until its host left etcd, unless the
// whole cluster is being deleted.
func (o *observer) seeDeletion(v *clusterv1.Machine, at time.Time) {
	if v.DeletionTimestamp.IsZero() || !util.IsControlPlaneMachine(v) {
		return
	}
	if cluster := clusterOfMachine(v); o.holds(beingDeleted, cluster) {
		o.act(effect{handOver: machinesDeleted, subject: name(v), at: at, needs: []need{{{beingDeleted, cluster}}}})
	}
	if _, held := v.Annotations[controlplanev1.EtcdMemberHookAnnotation]; held {
		waits := conditions.GetReason(v, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
		o.note(waitsForHook, name(v), waits, at)
		o.expect(memberRemoved, name(v), need{{waitsForHook, name(v)}})
	} else if _, waited := o.since(fact{waitsForHook, name(v)}); waited {
		o.act(effect{handOver: memberRemoved, subject: name(v), at: at, needs: []need{{{waitsForHook, name(v)}}}})
	}
}

func (o *observer) holds(what, subject string) bool {
	_, holds := o.since(fact{what, subject})
	return holds
}

// clusterOfMachine returns the subject of the Cluster of a Machine, and of all objects with its name.
func clusterOfMachine(v *clusterv1.Machine) string { return v.Namespace + "/" + v.Spec.ClusterName }

func (o *observer) clusterOf(machine string) string {
	o.lives.Lock()
	defer o.lives.Unlock()
	return o.clusters[machine]
}

// seeMachine records the masters of a Cluster. A master that is created after the deletion of another one replaces it.
func (o *observer) seeMachine(v *clusterv1.Machine, at time.Time) {
	cluster := clusterOfMachine(v)
	o.lives.Lock()
	o.clusters[name(v)] = cluster
	if !util.IsControlPlaneMachine(v) {
		o.lives.Unlock()
		return
	}
	of := o.mastersOf(cluster)
	if of.alive[name(v)] {
		o.lives.Unlock()
		return
	}
	of.alive[name(v)] = true
	of.created++
	replaces := of.created - of.wanted
	if of.deleted == 0 { // the first masters replace no other one
		of.wanted, replaces = of.created, 0
	}
	o.lives.Unlock()
	o.note(mastersGone, cluster, false, at)
	if replaces > 0 {
		deleted := fact{masterGone, fmt.Sprintf("%s %d", cluster, replaces)}
		o.act(effect{handOver: masterReplaced, subject: deleted.subject, at: at, needs: []need{{deleted}}})
	}
	// A Machine that exists when its control plane is being deleted is deleted too.
	o.expect(machinesDeleted, name(v), need{{beingDeleted, cluster}}, need{{masterAlive, name(v)}})
	o.note(masterAlive, name(v), true, at)
}

// mastersOf requires that lives is locked.
func (o *observer) mastersOf(cluster string) *masters {
	if o.masters[cluster] == nil {
		o.masters[cluster] = &masters{alive: map[string]bool{}}
	}
	return o.masters[cluster]
}

// seeGone records the deletion of an object. If its last state was missed, its last known state identifies it.
func (o *observer) seeGone(object any, at time.Time) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	switch v := object.(type) {
	case *clusterv1.Machine:
		o.seeMachineGone(v, at)
	case *hivev1.ClusterDeployment:
		// no effect if its deletion timestamp was seen before
		o.act(effect{handOver: clusterDeregistered, subject: name(v), at: at, needs: deregistration(name(v))})
		o.note(deploymentGone, name(v), true, at)
		o.expect(controlPlaneGone, name(v), deregistered(name(v))...)
	case *hiveext.AgentClusterInstall:
		o.note(installGone, name(v), true, at)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		o.act(effect{handOver: controlPlaneGone, subject: name(v), at: at, needs: deregistered(name(v))})
	case *aiv1beta1.Agent:
		o.seeAgentGone(v, at)
	}
}

func (o *observer) seeMachineGone(v *clusterv1.Machine, at time.Time) {
	if !util.IsControlPlaneMachine(v) {
		return
	}
	cluster := clusterOfMachine(v)
	o.lives.Lock()
	of := o.mastersOf(cluster)
	delete(of.alive, name(v))
	of.deleted++
	deleted, left := of.deleted, len(of.alive)
	o.lives.Unlock()
	o.note(masterAlive, name(v), false, at)
	o.note(masterGone, fmt.Sprintf("%s %d", cluster, deleted), true, at)
	if left == 0 {
		o.note(mastersGone, cluster, true, at)
		o.expect(clusterDeregistered, cluster, deregistration(cluster)...)
	}
}

// seeAgentGone records the deletion of an Agent. No finalizer delays it, so its deletion timestamp may never be seen.
func (o *observer) seeAgentGone(v *aiv1beta1.Agent, at time.Time) {
	agent := agentOf(v)
	for _, what := range []string{agentDiscovered, agentReady} {
		o.note(what, agent, false, at)
	}
	if v.Spec.ClusterDeploymentName != nil && v.Spec.Role == aiv1beta1.HostRoleWorker {
		machine := v.Namespace + "/" + v.Labels[aiv1beta1.InfraEnvNameLabel]
		o.act(effect{handOver: agentReleased, subject: agent, at: at, needs: []need{{{configDeleted, machine}}}})
	}
}

// deregistration returns the needs of the deregistration of a cluster.
func deregistration(cluster string) []need {
	return []need{{{beingDeleted, cluster}}, {{mastersGone, cluster}}}
}

// deregistered returns the needs of the end of the deletion of a control plane.
func deregistered(cluster string) []need {
	return []need{{{deploymentGone, cluster}}, {{installGone, cluster}}}
}
