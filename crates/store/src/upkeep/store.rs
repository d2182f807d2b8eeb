//! The store as its callers see it: an engine, and the state of passes.

use std::ops::Deref;

use crate::OpenOptions;
use crate::engine::Engine;
use crate::log::checkpointer::Checkpointer;
use crate::sync::Mutex;
use crate::upkeep::accounting::Accounting;
use crate::upkeep::catch_up::CatchUp;
use crate::upkeep::laying::Rested;
use crate::upkeep::optimize::Optimizer;
use crate::upkeep::reclaim::Reclaimer;
use crate::upkeep::scrub::Scrub;
use crate::world::World;
use crate::writer::Writer;

/// The store. All threads share it behind an [`Arc`](std::sync::Arc).
///
/// Front ends call the [`Engine`] to which it derefs, and never block. The store's own methods are
/// for threads that may: background passes, management and tools.
pub struct Store {
    engine: Engine,
    /// One checkpoint at a time.
    pub(crate) checkpointing: Mutex<Checkpointer>,
    pub(super) scrub: Mutex<Scrub>,
    /// The background pass of reduction.
    pub(super) optimizing: Optimizer,
    pub(super) reclaiming: Mutex<Reclaimer>,
    pub(super) laying: Mutex<Rested>,
    pub(super) accounting: Accounting,
    pub(super) catch_up: CatchUp,
}

impl Store {
    pub(crate) fn assemble(
        world: World,
        writer: Writer,
        checkpointer: Checkpointer,
        options: OpenOptions,
    ) -> Self {
        let scrub = Scrub::of_opening(&world, writer.state.losses);
        Self {
            engine: Engine::assemble(world, writer, checkpointer.superblock(), options),
            checkpointing: Mutex::new(checkpointer),
            scrub: Mutex::new(scrub),
            optimizing: Optimizer::default(),
            reclaiming: Mutex::default(),
            laying: Mutex::default(),
            accounting: Accounting::default(),
            catch_up: CatchUp::default(),
        }
    }
}

impl Deref for Store {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
