mod corrupt;
mod crash;
mod locks;
mod model;
mod play;
mod world;
