// Package dockerfile has tests which see to it that the Dockerfiles of the managers can be built, without a container
// engine: BuildKit's frontend translates them as it does for docker and podman, and the commands that come out are run
// with a go that only says how it is called.
package dockerfile
