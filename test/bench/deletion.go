package main

import (
	"fmt"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// seeDeletion: a control-plane host is released when it has left etcd, for which Cluster API waits. With the whole Cluster nobody waits.
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

// clusterOfMachine names the Cluster of a Machine, and so what has the same name.
func clusterOfMachine(v *clusterv1.Machine) string { return v.Namespace + "/" + v.Spec.ClusterName }

func (o *observer) clusterOf(machine string) string {
	o.lives.Lock()
	defer o.lives.Unlock()
	return o.clusters[machine]
}

// seeMachine keeps the books of a Cluster's masters: one that is made after another was gone takes its place.
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
	of.made++
	replaces := of.made - of.wanted
	if of.gone == 0 { // so far those that were wanted from the beginning are made
		of.wanted, replaces = of.made, 0
	}
	o.lives.Unlock()
	o.note(mastersGone, cluster, false, at)
	if replaces > 0 {
		gone := fact{masterGone, fmt.Sprintf("%s %d", cluster, replaces)}
		o.act(effect{handOver: masterReplaced, subject: gone.subject, at: at, needs: []need{{gone}}})
	}
	// A Machine that is there when its control plane goes is deleted.
	o.expect(machinesDeleted, name(v), need{{beingDeleted, cluster}}, need{{masterAlive, name(v)}})
	o.note(masterAlive, name(v), true, at)
}

// mastersOf is called with lives held.
func (o *observer) mastersOf(cluster string) *masters {
	if o.masters[cluster] == nil {
		o.masters[cluster] = &masters{alive: map[string]bool{}}
	}
	return o.masters[cluster]
}

// seeGone notes that an object is no more. Where it is not known what it was last, it is known which it was.
func (o *observer) seeGone(object any, at time.Time) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	switch v := object.(type) {
	case *clusterv1.Machine:
		o.seeMachineGone(v, at)
	case *hivev1.ClusterDeployment:
		// unless its deletion was seen before
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
	of.gone++
	gone, left := of.gone, len(of.alive)
	o.lives.Unlock()
	o.note(masterAlive, name(v), false, at)
	o.note(masterGone, fmt.Sprintf("%s %d", cluster, gone), true, at)
	if left == 0 {
		o.note(mastersGone, cluster, true, at)
		o.expect(clusterDeregistered, cluster, deregistration(cluster)...)
	}
}

// seeAgentGone: nothing holds an Agent that is deleted before its deletion was seen.
func (o *observer) seeAgentGone(v *aiv1beta1.Agent, at time.Time) {
	agent := agentOf(v)
	for _, what := range []string{agentDiscovered, agentReady} {
		o.note(what, agent, false, at)
	}
	if v.Spec.ClusterDeploymentName != nil && v.Spec.Role == models.HostRoleWorker {
		machine := v.Namespace + "/" + v.Labels[aiv1beta1.InfraEnvNameLabel]
		o.act(effect{handOver: agentReleased, subject: agent, at: at, needs: []need{{{configDeleted, machine}}}})
	}
}

// deregistration is what must have happened before a cluster is deregistered.
func deregistration(cluster string) []need {
	return []need{{{beingDeleted, cluster}}, {{mastersGone, cluster}}}
}

// deregistered is what must have happened before a control plane goes.
func deregistered(cluster string) []need {
	return []need{{{deploymentGone, cluster}}, {{installGone, cluster}}}
}
