// Package dockerfile tests, without a container engine, that the Dockerfiles of the managers can be built. The frontend
// of BuildKit translates them as it does for docker and podman. The resulting commands run with a go command that only
// prints its arguments.
package dockerfile
