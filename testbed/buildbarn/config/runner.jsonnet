// bb_runner: starts the commands of actions, for the worker on the same machine. DIR is a folder of theirs, absolute, with a folder build.
{
  global: {},
  buildDirectoryPath: std.extVar('DIR') + '/build',
  grpcServers: [{ listenPaths: [std.extVar('DIR') + '/runner'], authenticationPolicy: { allow: {} } }],
}
